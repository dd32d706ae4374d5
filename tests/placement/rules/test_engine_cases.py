"""The smallest states on which a copy of ours once differed from the engine's own classes."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.model import Snapshot
from ovirt_placement.model.files import state_file
from ovirt_placement.rules.affinity.conflicts import find_conflicts
from ovirt_placement.rules.affinity.groups import hard_positive_group_of
from ovirt_placement.rules.built_in.affinity import filter_by_vm_groups, score_by_host_groups
from ovirt_placement.rules.built_in.filters import filter_by_cpu_load, filter_by_cpus, filter_by_memory
from ovirt_placement.rules.built_in.weights import score_by_preference
from ovirt_placement.rules.catalogue import constraints
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.elements.ranks import order_hosts
from ovirt_placement.rules.elements.rule import Filter
from ovirt_placement.rules.elements.verdict import BalanceMove, Request
from ovirt_placement.rules.engine_enforcement import tiers as tiers_of_engine
from ovirt_placement.rules.engines_weights import ENGINES_WEIGHTS
from ovirt_placement.rules.failover.check import by_engine
from ovirt_placement.rules.load import LoadLimits, balance_load, proposals, score_by_cpu, score_by_memory
from tests.paths import DATA

Scores = Callable[[Snapshot, Request], dict[str, int]]

FILTERS: dict[str, Filter] = {
    "cpu-larger-vm-runs-there": filter_by_cpus,
    "cpu-overloaded": filter_by_cpu_load,
    "foreign-positive-peer": filter_by_vm_groups,
    "memory-overhead": filter_by_memory,
    "memory-paused": filter_by_memory,
}
WEIGHTS: dict[str, Scores] = {
    "even-cpu-no-statistics": score_by_cpu,
    "even-cpu-threads": score_by_cpu,
    "even-cpu-unknown-use": score_by_cpu,
    "even-memory-own": score_by_memory,
    "even-memory-steps": score_by_memory,
    "host-groups-of-two-vms": score_by_host_groups,
    "preferred-of-running-vm": score_by_preference,
    "priority-of-eight-decimals": score_by_host_groups,
}
BALANCES = {"even-order-of-sources", "even-threads", "even-whole-percent"}
ENFORCEMENT = {"enforcement-ids-are-signed", "enforcement-unified-set"}
SELECTION = {"rank-two-hosts-in-one-bin"}
SCHEDULING = {"schedule-units-that-tie"}
CLOSURE = {"closure-by-a-group-of-another-cluster"}
CONFLICTS = {"conflict-pair-other-way-round"}
HA_CHECKS = {"ha-check-hosts-by-id", "ha-check-pending-twice"}


def test_every_state_is_asked_about() -> None:
    others = BALANCES | ENFORCEMENT | SELECTION | SCHEDULING | CLOSURE | CONFLICTS | HA_CHECKS
    assert {*FILTERS, *WEIGHTS, *others} == set(names())


@pytest.mark.parametrize("name", FILTERS)
def test_filters(name: str) -> None:
    case = EngineCase.named(name)
    verdicts = FILTERS[name](case.snapshot, case.request)
    assert [verdict.host for verdict in verdicts if verdict.accepted] == case.answer


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights(name: str) -> None:
    case = EngineCase.named(name)
    scores = WEIGHTS[name](case.snapshot, case.request)
    assert tiers(dict.fromkeys(case.request.candidate_hosts, 0) | scores) == case.answer


@pytest.mark.parametrize("name", sorted(BALANCES))
def test_balances(name: str) -> None:
    """The engine lets a VM stay where it is, too, which ours need not say."""
    case = EngineCase.named(name)
    state, limits = case.snapshot, LoadLimits(high_utilization=case.asked["HighUtilization"])
    hosts = tuple(host.id for host in state.hosts)
    found = proposals(state, case.asked["cluster"], hosts, limits, frozenset(hosts))
    expected = [
        BalanceMove(one["vm"], tuple(host for host in one["hosts"] if host != state.vm_by_id[one["vm"]].host))
        for one in case.answer
    ]
    assert list(found) == expected
    moved = balance_load(state, case.asked["cluster"], hosts, limits, frozenset(hosts))
    assert moved == (expected[0] if expected else None)


@pytest.mark.parametrize("name", sorted(ENFORCEMENT))
def test_enforcement(name: str) -> None:
    """Each order that the engine's lots gave is one of ours, where only the order within a tier is by lot."""
    case = EngineCase.named(name)
    placement = SnapshotPlacement(case.snapshot)
    rules = [one for one in constraints(case.snapshot, case.asked["cluster"]) if not one.keeps(placement)]
    movable = {vm.id for vm in case.snapshot.vms if vm.movable}
    found = [tier for _, tier in tiers_of_engine(rules, placement, movable)]
    for order in case.answer:
        left = list(order)
        for tier in found:
            assert {left.pop(0) for _ in tier} == {*tier}
        assert not left


def test_selection() -> None:
    case = EngineCase.named("rank-two-hosts-in-one-bin")
    weights: dict[str | None, dict[str, int]] = {}
    for unit, host, weight in case.asked["records"]:
        weights.setdefault(unit, {})[host] = weight
    ordered = order_hosts(case.asked["hosts"], weights, dict(case.asked["units"]))
    assert ordered[0].host == case.answer


def test_scheduling() -> None:
    """Weights that are the same for all hosts still decide in which order equal ones come."""
    case = EngineCase.named("schedule-units-that-tie")
    hosts = tuple(sorted(host.id for host in case.snapshot.hosts if host.up))
    request = Request(tuple(case.asked["vms"]), hosts)
    weights = {one.unit: one.scores(case.snapshot, request) for one in ENGINES_WEIGHTS}
    factors = {one.unit: one.factor for one in ENGINES_WEIGHTS}
    best, other = order_hosts(hosts, {**weights}, factors)
    assert best.host == case.answer
    assert best.points == other.points


def test_closure() -> None:
    """A group of another cluster ties no VMs to each other."""
    case = EngineCase.named("closure-by-a-group-of-another-cluster")
    tied = hard_positive_group_of(case.snapshot)
    closure = {vm for asked in case.asked["vms"] for vm in (tied[asked].vms if asked in tied else (asked,))}
    assert sorted(closure) == case.answer


def test_conflicts() -> None:
    """The same VMs and host; of groups, ours names but those that the conflict needs (C4)."""
    case = EngineCase.named("conflict-pair-other-way-round")
    (engines,) = case.answer
    (found,) = find_conflicts(case.snapshot, case.asked["cluster"])
    assert (found.type, list(found.vms), list(found.hosts)) == (
        engines["type"],
        engines["vms"],
        engines["hosts"],
    )
    assert {*found.groups} < {*engines["groups"]}


@pytest.mark.parametrize("name", sorted(HA_CHECKS))
def test_ha_checks(name: str) -> None:
    """The engine's own check, but for its faults: it deducts pending memory twice, ours once (HC4)."""
    case = EngineCase.named(name)
    (engines,) = case.answer
    found = by_engine(case.snapshot, case.asked["cluster"], 1)
    assert found.safe is (engines["safe"] or name == "ha-check-pending-twice")


FOLDER = DATA / "engine-cases"
#: What stands next to the state: the question, and who answered what.
_ALONGSIDE = {"name", "engine_class", "request", "engine", "product", "simulator"}


@dataclass(frozen=True)
class EngineCase:
    """One state of the folder."""

    whole: dict[str, Any]

    @classmethod
    def named(cls, name: str) -> EngineCase:
        return cls(json.loads((FOLDER / f"{name}.json").read_text()))

    @cached_property
    def snapshot(self) -> Snapshot:
        state = {key: value for key, value in self.whole.items() if key not in _ALONGSIDE}
        return state_file.loads(json.dumps(state).encode())

    @property
    def asked(self) -> dict[str, Any]:
        return dict(self.whole["request"])

    @property
    def request(self) -> Request:
        vms = tuple(self.asked["vms"])
        cluster = self.snapshot.cluster_by_id[self.snapshot.vm_by_id[vms[0]].cluster]
        hosts = tuple(self.asked["candidate_hosts"])
        return Request(vms, hosts, parameters=cluster.scheduling_properties)

    @property
    def answer(self) -> Any:
        """What the engine's class said."""
        return self.whole["engine"]


def names() -> list[str]:
    return sorted(path.stem for path in Path(FOLDER).glob("*.json"))


def tiers(scores: dict[str, int]) -> list[list[str]]:
    """Hosts by their weights, the best first; those that tie together."""
    return [sorted(host for host in scores if scores[host] == score) for score in sorted({*scores.values()})]
