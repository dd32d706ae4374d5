"""The smallest states on which a copy of ours once differed from the engine's own classes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ovirt_placement.model import Snapshot
from ovirt_placement.rules import rank_selector
from ovirt_placement.rules.built_in import (
    cpu,
    memory,
    preferred_hosts,
    vm_affinity_groups,
    vm_to_hosts_weight,
)
from ovirt_placement.rules.load import even_cpu, even_memory
from ovirt_placement.rules.rule import Filter
from ovirt_placement.rules.verdict import Request
from tests.placement.rules.engine_cases import EngineCase, names, tiers

Scores = Callable[[Snapshot, Request], dict[str, int]]

FILTERS: dict[str, Filter] = {
    "cpu-larger-vm-runs-there": cpu.filter_hosts,
    "foreign-positive-peer": vm_affinity_groups.filter_hosts,
    "memory-overhead": memory.filter_hosts,
    "memory-paused": memory.filter_hosts,
}
WEIGHTS: dict[str, Scores] = {
    "even-cpu-no-statistics": even_cpu.scores,
    "even-cpu-threads": even_cpu.scores,
    "even-cpu-unknown-use": even_cpu.scores,
    "even-memory-own": even_memory.scores,
    "even-memory-steps": even_memory.scores,
    "host-groups-of-two-vms": vm_to_hosts_weight.scores,
    "preferred-of-running-vm": preferred_hosts.scores,
    "priority-of-eight-decimals": vm_to_hosts_weight.scores,
}
BALANCES = {"even-order-of-sources", "even-threads", "even-whole-percent"}
ENFORCEMENT = {"enforcement-ids-are-signed"}
SELECTION = {"rank-two-hosts-in-one-bin"}
#: Those of the simulator, of which the product has no copy, or has chosen another answer (docs/rules.md).
OF_THE_SIMULATOR = {
    "closure-by-a-group-of-another-cluster",
    "conflict-pair-other-way-round",
    "ha-check-hosts-by-id",
    "ha-check-pending-twice",
}


def test_every_state_is_asked_about() -> None:
    asked = {*FILTERS, *WEIGHTS, *BALANCES, *ENFORCEMENT, *SELECTION, *OF_THE_SIMULATOR}
    assert asked == set(names())


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


def test_selection() -> None:
    case = EngineCase.named("rank-two-hosts-in-one-bin")
    weights: dict[str | None, dict[str, int]] = {}
    for unit, host, weight in case.asked["records"]:
        weights.setdefault(unit, {})[host] = weight
    ordered = rank_selector.order_hosts(case.asked["hosts"], weights, dict(case.asked["units"]))
    assert ordered[0].host == case.answer
