"""The smallest states on which the simulated engine once answered otherwise than the engine's own classes."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.files import state_file
from ovirt_simulator.core import affinity
from ovirt_simulator.core.backend import Backend
from ovirt_simulator.scheduler import filters, weights
from ovirt_simulator.scheduler.affinity_enforcement import candidates
from ovirt_simulator.scheduler.external import ExternalUnits
from ovirt_simulator.scheduler.filters import Filter, Request, cpu_overloaded, note_load
from ovirt_simulator.scheduler.placing import Scheduler
from ovirt_simulator.scheduler.weights import Record, Weight, best_host
from tests.paths import DATA
from tests.simulator.core import engines
from tests.simulator.core.engines import START

FOLDER = DATA / "engine-cases"
#: What stands next to the state: the question, and who answered what.
ALONGSIDE = {"name", "engine_class", "request", "engine", "product", "simulator"}

FILTERS: dict[str, Filter] = {
    "cpu-larger-vm-runs-there": filters.cpu,
    "foreign-positive-peer": filters.vm_affinity,
    "memory-overhead": filters.memory,
    "memory-paused": filters.memory,
}
WEIGHTS: dict[str, Weight] = {
    "even-cpu-no-statistics": weights.even_cpu,
    "even-cpu-threads": weights.even_cpu,
    "even-cpu-unknown-use": weights.even_cpu,
    "even-memory-own": weights.even_memory,
    "even-memory-steps": weights.even_memory,
    "host-groups-of-two-vms": weights.vm_to_host,
    "preferred-of-running-vm": weights.preferred_hosts,
    "priority-of-eight-decimals": weights.vm_to_host,
}
OTHERS = {
    "closure-by-a-group-of-another-cluster",
    "conflict-pair-other-way-round",
    "cpu-overloaded",
    "rank-two-hosts-in-one-bin",
    "schedule-units-that-tie",
}
ENFORCEMENT = ["enforcement-ids-are-signed", "enforcement-unified-set"]
#: Of the engine's own balance, which does nothing here.
OF_THE_PRODUCT = {
    *("even-order-of-sources", "even-threads", "even-whole-percent"),
    *("ha-check-hosts-by-id", "ha-check-pending-twice"),
}


def case(name: str) -> dict[str, Any]:
    return dict(json.loads((FOLDER / f"{name}.json").read_text()))


def state(case: dict[str, Any]) -> Snapshot:
    whole = {key: value for key, value in case.items() if key not in ALONGSIDE}
    return state_file.loads(json.dumps(whole).encode())


def backend(case: dict[str, Any], seed: int = 0) -> Backend:
    return engines.backend(state(case), seed)


def asked(case: dict[str, Any]) -> tuple[Snapshot, list[Vm], list[Host]]:
    snapshot, request = state(case), case["request"]
    return (
        snapshot,
        [snapshot.vm_by_id[vm_id] for vm_id in request["vms"]],
        [snapshot.host_by_id[host_id] for host_id in request["candidate_hosts"]],
    )


def test_every_state_is_asked_about() -> None:
    names = {path.stem for path in FOLDER.glob("*.json")}
    assert {*FILTERS, *WEIGHTS, *ENFORCEMENT, *OTHERS, *OF_THE_PRODUCT} == names


@pytest.mark.parametrize("name", FILTERS)
def test_filters(name: str) -> None:
    snapshot, vms, hosts = asked(case(name))
    refused = FILTERS[name](snapshot, vms, hosts)
    assert [host.id for host in hosts if host.id not in refused] == case(name)["engine"]


def test_overloaded_hosts() -> None:
    """Those that have been so for longer than the policy says."""
    found = case("cpu-overloaded")
    engine = backend(found)
    note_load(engine)
    refused = cpu_overloaded(engine.state, START + timedelta(minutes=2), *asked(found))
    assert [host for host in found["request"]["candidate_hosts"] if host not in refused] == found["engine"]


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights(name: str) -> None:
    snapshot, vms, hosts = asked(case(name))
    found = dict.fromkeys((host.id for host in hosts), 0) | WEIGHTS[name](snapshot, vms, hosts)
    tiers = [sorted(host for host in found if found[host] == one) for one in sorted({*found.values()})]
    assert tiers == case(name)["engine"]


def test_closure() -> None:
    found = case("closure-by-a-group-of-another-cluster")
    (vm_id,) = found["request"]["vms"]
    assert list(affinity.closure(backend(found).state, vm_id)) == found["engine"]


def test_conflicts() -> None:
    found = case("conflict-pair-other-way-round")
    known = backend(found).state
    ids = {group.name: group.id for group in known.groups.values()}
    conflicts = engines.conflicts(known)
    assert [one | {"groups": sorted(map(ids.get, one["groups"]))} for one in conflicts] == found["engine"]


@pytest.mark.parametrize("name", ENFORCEMENT)
def test_enforcement(name: str) -> None:
    """All orders that the engine's lots gave come up, and no other."""
    found = case(name)
    orders = set()
    for seed in range(50):
        engine = backend(found, seed)
        cluster = engine.state.clusters[found["request"]["cluster"]]
        orders.add(tuple(vm.id for vm in candidates(engine.state, cluster, engine.random.shuffle)))
    assert orders == set(map(tuple, found["engine"]))


def test_scheduling() -> None:
    """Weights that are the same for all hosts still decide in which order equal ones come."""
    found = case("schedule-units-that-tie")
    engine = backend(found)
    scheduler = Scheduler(engine, ExternalUnits(engine, None))
    request = Request(vm_ids=tuple(found["request"]["vms"]))
    assert scheduler.schedule(request, lambda host: host) == found["engine"]


def test_selection() -> None:
    found = case("rank-two-hosts-in-one-bin")
    request = found["request"]
    records = [Record(*record) for record in request["records"]]
    assert best_host(request["hosts"], records, dict(request["units"])) == found["engine"]
