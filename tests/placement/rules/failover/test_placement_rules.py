"""Restarts under placement rules against brute force: every order of starts, on every host that lets a VM."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.assignment import Budget
from ovirt_placement.rules.failover.outcomes import Survival
from ovirt_placement.rules.failover.starts import Starts
from ovirt_placement.rules.placement_rules.in_force import KINDS
from tests.builders import CLUSTER, cluster, host, needed_mb, snapshot, vm
from tests.examples import examples
from tests.placement.rules.placement_rules.drawn import placement_rules
from tests.placement.rules.placement_rules.oracle import lets, running

HOSTS = ("h1", "h2", "h3", "h4")
VMS = ("a", "b", "c", "d", "e")


@st.composite
def states(draw: st.DrawFn, kind: str) -> Snapshot:
    """One host, the first, has up to three VMs that are to restart; room is tight now and then."""
    hosts = [host(name, free_mb=draw(st.sampled_from([0, 1024, 2048, 8192]))) for name in HOSTS]
    vms = [
        vm(name, "h1" if number < 3 else draw(st.sampled_from([None, *HOSTS[1:]])), ha=number < 3)
        for number, name in enumerate(VMS)
    ]
    rules = [draw(placement_rules("r0", VMS, HOSTS, (kind,), enforcing=True))]
    if draw(st.booleans()):
        rules.append(draw(placement_rules("r1", VMS, HOSTS, enforcing=True)))
    return snapshot(cluster(ha_reservation=True), *hosts, *vms, *rules)


def failed(state: Snapshot) -> Snapshot:
    return replace(
        state,
        hosts=tuple(replace(one, status="down") if one.id == "h1" else one for one in state.hosts),
        vms=tuple(
            replace(one, host=None, status="down") if one.host == "h1" else one for one in state.vms
        ),
    )  # fmt: skip


def survives(state: Snapshot) -> bool:
    """Whether any order of starts gets each VM of the first host somewhere."""
    after = failed(state)
    lost = [one.id for one in state.vms if one.host == "h1" and one.ha]
    return any(starts(after, running(after), order) for order in permutations(lost))


def starts(state: Snapshot, at: dict[str, str], order: tuple[str, ...]) -> bool:
    if not order:
        return True
    first, *others = order
    open_hosts = [
        name
        for name in HOSTS[1:]
        if fits(state, at, first, name)
        and all(lets(each, state, at, first, name) for each in state.placement_rules)
    ]
    return any(starts(state, {**at, first: name}, tuple(others)) for name in open_hosts)


def fits(state: Snapshot, at: dict[str, str], one: str, name: str) -> bool:
    """Memory of those that have started since is taken; `free_mb` has that of the others off already."""
    begun = [state.vm_by_id[each] for each, there in at.items() if there == name]
    taken = sum(needed_mb(each) for each in begun if each.host is None)
    return taken + needed_mb(state.vm_by_id[one]) <= state.host_by_id[name].free_mb


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(40))
@given(data=st.data())
def test_a_failure_is_survived_if_there_is_an_order_of_starts(kind: str, data: st.DataObject) -> None:
    state = data.draw(states(kind))
    outcome = Starts(state, CLUSTER).judge(("h1",), Budget(1_000_000))
    assert isinstance(outcome, Survival) is survives(state)
    if isinstance(outcome, Survival):
        after = failed(state)
        at = running(after)
        for one, home in outcome.homes.items():
            assert fits(after, at, one, home)
            assert all(lets(rule, after, at, one, home) for rule in state.placement_rules)
            at[one] = home
