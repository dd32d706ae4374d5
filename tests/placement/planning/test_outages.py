"""Emptying hosts against brute force: as few VMs stay, rules are violated and migrations made as can be."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.answers.plans.maintenance import EvacuationRecord, evacuation_text
from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import with_names
from ovirt_placement.planning.outages import Evacuation, evacuate
from ovirt_placement.planning.plan import Deadline
from tests.builders import (
    APART,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    Part,
    cluster,
    group,
    host,
    snapshot,
    vm,
)
from tests.examples import examples
from tests.placement.planning.brute_force import Assignment, BruteForce
from tests.placement.planning.clusters import tiny_clusters

#: VMs that stay, soft rules newly violated by priority, and migrations.
Value = tuple[int, ...]


class Emptying(BruteForce):
    """All placements that migrations reach which take nothing to the hosts that are to be empty."""

    def __init__(self, state: Snapshot, emptied: frozenset[str]) -> None:
        super().__init__(state)
        self.emptied = emptied
        self.satisfied = [rule for rule in self.rules if not rule.violated(self.start)]

    def may_go(self, at: Assignment, moving: tuple[int, ...], host: str) -> bool:
        return host not in self.emptied and super().may_go(at, moving, host)

    def value(self, at: Assignment, cost: int) -> Value:
        violated = [rule for rule in self.satisfied if rule.violated(at)]
        assert not any(rule.hard for rule in violated)
        soft = [sum(rule.priority == level for rule in violated) for level in self.priorities]
        return (sum(host in self.emptied for host in at), *soft, cost)

    def least(self) -> Value:
        return min(self.value(at, cost) for at, cost in self.cheapest().items())

    def followed(self, found: Evacuation) -> Value:
        """What the plan comes to; each of its steps must be one of those that are legal."""
        at, cost = self.follow(found.plan.steps)
        staying = {self.vms[number].id for number, host in enumerate(at) if host in self.emptied}
        assert {one.vm for one in found.staying} == staying
        return self.value(at, cost)


@settings(max_examples=examples(100), deadline=None)
@given(tiny_clusters(), st.sets(st.sampled_from(["h0", "h1"]), min_size=1))
def test_nothing_empties_hosts_better(state: Snapshot, drawn: set[str]) -> None:
    hosts = sorted(one for one in drawn if state.host_by_id[one].up)
    ((found,), end) = evacuate(state, hosts) if hosts else ((None,), state)
    if found is None:
        return
    oracle = Emptying(state, frozenset(hosts))
    value = oracle.followed(found)
    least = oracle.least()
    assert value >= least
    if found.plan.proven:
        assert value == least
    for one in hosts:
        busy = any(known.host == one for known in end.vms)
        assert end.host_by_id[one].status == ("preparing_for_maintenance" if busy else "maintenance")


def state_with(*parts: Part) -> Snapshot:
    return snapshot(
        cluster(name="blue"),
        *(host(name, free_mb=8192, name=f"node-{name}") for name in ("h1", "h2", "h3")),
        *parts,
    )


def said(state: Snapshot, *hosts: str) -> str:
    (found,), end = evacuate(state, hosts)
    return "\n".join(evacuation_text(with_names(EvacuationRecord, found, end)))


def test_groups_leave_together_and_rules_between_vms_are_kept() -> None:
    rules = group("near", TOGETHER, "a b"), group("far", APART, "a c")
    state = state_with(vm("a", "h1"), vm("b", "h1"), vm("c", "h2"), *rules)
    text = said(state, "h1")
    assert "empty after 2 migrations (the fewest), about " in text
    assert "a from node-h1, b from node-h1 to node-h3 (at once, as one group): off a host" in text


def test_a_soft_rule_gives_way_only_where_it_must() -> None:
    soft = group("near", SOFT_TOGETHER, "a b"), group("far", SOFT_APART, "a c", priority=2.0)
    state = state_with(vm("a", "h1"), vm("b", "h1"), vm("c", "h2"), *soft)
    assert "to node-h3" in said(state, "h1")
    (found,), _ = evacuate(state, ["h1", "h3"])
    assert {step.target for step in found.plan.steps} == {"h2"}
    assert not found.staying


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"migratable": False}, "it may not be migrated automatically"),
        ({"status": "paused"}, "its status is paused, not up"),
        ({"needs_mb": 16384}, "16384 MiB needed, 8192 MiB free"),
    ],
)
def test_a_vm_that_cannot_leave_is_named_with_its_reason(fields: dict[str, Any], why: str) -> None:
    state = state_with(vm("a", "h1", **fields), vm("b", "h1"))
    text = said(state, "h1")
    assert "1 VM cannot leave; the others need 1 migration (the fewest)" in text
    assert "a cannot leave node-h1:" in text
    assert why in text


def test_what_was_not_found_in_time_is_not_called_impossible() -> None:
    """The same state has a way out for both, found where there is time."""
    state = state_with(vm("a", "h1"), vm("b", "h1"), vm("c", "h2"), group("near", TOGETHER, "a b"))
    (found,), _ = evacuate(state, ["h1"], Deadline(lambda: 0.0))
    record = with_names(EvacuationRecord, found, state)
    assert [one.proven for one in record.staying] == [False, False]
    text = "\n".join(evacuation_text(record))
    assert "for 2 VMs no way was found, and not all could be tried\n" in text
    assert "no way was found for a to leave node-h1:" in text
    assert "cannot leave" not in text


def test_what_waits_behind_a_pinned_peer_says_so() -> None:
    state = state_with(vm("a", "h1", migratable=False), vm("b", "h1"), group("near", TOGETHER, "a b"))
    text = said(state, "h1")
    assert "2 VMs cannot leave\n" in text
    assert "b must also run together (affinity group near)" in text


def test_an_empty_host_needs_nothing() -> None:
    assert said(state_with(vm("a", "h1")), "h2", "h3").endswith("in cluster blue: empty already")
