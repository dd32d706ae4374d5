"""The smallest states on which a copy of ours once answered otherwise than the engine's own classes.

`tests/data/engine-cases` has each with the question and the engine's answer.
"""

import json
from typing import Any

import pytest

from ovirt_placement.rules.affinity.conflicts import find_conflicts
from ovirt_placement.rules.affinity.groups import hard_positive_group_of
from ovirt_placement.rules.catalogue import constraints
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.elements.ranks import order_hosts
from ovirt_placement.rules.elements.verdict import BalanceMove, Request
from ovirt_placement.rules.engine_affinity import tiers as tiers_of_engine
from ovirt_placement.rules.engine_weights import ENGINES_WEIGHTS
from ovirt_placement.rules.failover.check import by_engine
from ovirt_placement.rules.load import LoadLimits, balance_load, proposals
from ovirt_simulator.core import affinity
from ovirt_simulator.scheduler.placing import candidates
from tests.paths import DATA
from tests.simulator.core import engines
from tools.engine_conformance import answers
from tools.engine_conformance.__main__ import UNITS
from tools.engine_conformance.comparing import as_conflicts, as_tiers
from tools.engine_conformance.questions import Question

#: What stands next to the state: the question, and who answered what.
ALONGSIDE = {"name", "engine_class", "request", "engine", "product", "simulator"}
CASES = {path.stem: json.loads(path.read_text()) for path in (DATA / "engine-cases").glob("*.json")}

#: Those of units that the product and the simulator both have a copy of.
COPIED = {
    "cpu-larger-vm-runs-there": "cpu",
    "cpu-overloaded": "cpu-overloaded",
    "even-cpu-no-statistics": "even-cpu",
    "even-cpu-threads": "even-cpu",
    "even-cpu-unknown-use": "even-cpu",
    "even-memory-own": "even-memory",
    "even-memory-steps": "even-memory",
    "foreign-positive-peer": "vm-affinity",
    "host-groups-of-two-vms": "vm-to-host-weight",
    "memory-overhead": "memory",
    "memory-paused": "memory",
    "preferred-of-running-vm": "preferred-hosts",
    "priority-of-eight-decimals": "vm-to-host-weight",
    "rank-two-hosts-in-one-bin": "rank-selector",
}
BALANCES = {"even-order-of-sources", "even-threads", "even-whole-percent"}
ENFORCEMENT = {"enforcement-ids-are-signed", "enforcement-unified-set"}
CLOSURE = "closure-by-a-group-of-another-cluster"
CONFLICT = "conflict-pair-other-way-round"
SCHEDULING = "schedule-units-that-tie"
HA_CHECKS = {"ha-check-hosts-by-id", "ha-check-pending-twice"}


def question(name: str) -> Question:
    state = {key: value for key, value in CASES[name].items() if key not in ALONGSIDE}
    return Question("case", state, CASES[name]["request"])


def engine(name: str) -> Any:
    """What the engine's class said."""
    return CASES[name]["engine"]


def test_every_state_is_asked_about() -> None:
    assert {*COPIED, *BALANCES, *ENFORCEMENT, CLOSURE, CONFLICT, SCHEDULING, *HA_CHECKS} == set(CASES)


@pytest.mark.parametrize("copy", ["product", "simulator"])
@pytest.mark.parametrize("name", COPIED)
def test_copies(name: str, copy: str) -> None:
    asked, unit = question(name), UNITS[COPIED[name]]
    found = unit.copies[copy].answer(asked)
    assert (as_tiers(asked, found) if unit.kind == "weight" else found) == engine(name)


@pytest.mark.parametrize("name", sorted(BALANCES))
def test_balances(name: str) -> None:
    """The engine lets a VM stay where it is, too, which ours need not say."""
    asked = question(name)
    state, cluster = asked.snapshot, asked.request["cluster"]
    limits = LoadLimits(high_utilization=asked.request["HighUtilization"])
    hosts = tuple(host.id for host in state.hosts)
    expected = [
        BalanceMove(one["vm"], tuple(host for host in one["hosts"] if host != state.vm_by_id[one["vm"]].host))
        for one in engine(name)
    ]
    assert list(proposals(state, cluster, hosts, limits, frozenset(hosts))) == expected
    moved = balance_load(state, cluster, hosts, limits, frozenset(hosts))
    assert moved == (expected[0] if expected else None)


@pytest.mark.parametrize("name", sorted(ENFORCEMENT))
def test_enforcement_of_the_product(name: str) -> None:
    """Each order that the engine's lots gave is one of ours, where only the order within a tier is by lot."""
    asked = question(name)
    placement = SnapshotPlacement(asked.snapshot)
    rules = [one for one in constraints(asked.snapshot, asked.request["cluster"]) if not one.keeps(placement)]
    movable = {vm.id for vm in asked.snapshot.vms if vm.movable}
    found = [tier for _, tier in tiers_of_engine(rules, placement, movable)]
    for order in engine(name):
        left = list(order)
        for tier in found:
            assert {left.pop(0) for _ in tier} == {*tier}
        assert not left


@pytest.mark.parametrize("name", sorted(ENFORCEMENT))
def test_enforcement_of_the_simulator(name: str) -> None:
    """All orders that the engine's lots gave come up, and no other."""
    asked = question(name)
    orders = set()
    for seed in range(50):
        backend = engines.backend(asked.snapshot, seed)
        cluster = backend.state.clusters[asked.request["cluster"]]
        orders.add(tuple(vm.id for vm in candidates(backend.state, cluster, backend.random.shuffle)))
    assert orders == set(map(tuple, engine(name)))


def test_scheduling() -> None:
    """Weights that are the same for all hosts still decide in which order equal ones come."""
    asked = question(SCHEDULING)
    hosts = tuple(sorted(host.id for host in asked.snapshot.hosts if host.up))
    request = Request(tuple(asked.request["vms"]), hosts)
    weights = {one.unit: one.scores(asked.snapshot, request) for one in ENGINES_WEIGHTS}
    best, other = order_hosts(hosts, {**weights}, {one.unit: one.factor for one in ENGINES_WEIGHTS})
    assert best.host == engine(SCHEDULING) == answers.schedule(asked)["best"]
    assert best.points == other.points


def test_closure() -> None:
    """A group of another cluster ties no VMs to each other."""
    asked = question(CLOSURE)
    (vm,) = asked.vms
    assert vm not in hard_positive_group_of(asked.snapshot)
    assert [vm] == list(affinity.closure(engines.backend(asked.snapshot).state, vm)) == engine(CLOSURE)


def test_conflict() -> None:
    """The same VMs and host; of groups, ours names but those that the conflict needs (C4)."""
    asked = question(CONFLICT)
    assert as_conflicts(asked, answers.collisions(asked)) == as_conflicts(asked, engine(CONFLICT))
    (found,) = find_conflicts(asked.snapshot, asked.request["cluster"])
    (engines_own,) = engine(CONFLICT)
    assert (found.type, list(found.vms), list(found.hosts)) == tuple(
        engines_own[key] for key in ("type", "vms", "hosts")
    )
    assert {*found.groups} < {*engines_own["groups"]}


@pytest.mark.parametrize("name", sorted(HA_CHECKS))
def test_ha_checks(name: str) -> None:
    """The engine's own check, but for its faults: it deducts pending memory twice, ours once (HC4)."""
    asked = question(name)
    (engines_own,) = engine(name)
    found = by_engine(asked.snapshot, asked.request["cluster"], 1)
    assert found.safe is (engines_own["safe"] or name == "ha-check-pending-twice")
