"""Room by placement rules: a VM that they let start nowhere starts after the fewest legal migrations."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.requests import make_room
from ovirt_placement.rules.placement_rules.in_force import KINDS
from tests.builders import host, rule, snapshot, vm
from tests.placement.planning.test_placement_rules import FEW, HOSTS, VMS, At, fits, legal, migrations, placed
from tests.placement.rules.placement_rules.drawn import placement_rules
from tests.placement.rules.placement_rules.oracle import lets

NEW = "new"


@st.composite
def states(draw: st.DrawFn, kind: str) -> Snapshot:
    """Unequal hosts; a VM that is down is a member of some rules, as of the first, of this kind."""
    hosts = [host(name, free_mb=draw(st.sampled_from([0, 1024, 2048, 8192]))) for name in HOSTS[:3]]
    vms = [
        vm(name, draw(st.sampled_from(HOSTS[:3])), migratable=draw(st.integers(0, 5)) > 0) for name in VMS[:3]
    ]
    rules = [
        draw(placement_rules(f"r{number}", (NEW, *VMS[:3]), HOSTS[:3], kinds, enforcing=True))
        for number, kinds in enumerate(((kind,), tuple(KINDS)))
    ]
    return snapshot(*hosts, *vms, vm(NEW), *rules[: draw(st.integers(1, 2))])


def starts(state: Snapshot, at: At) -> bool:
    """Whether some host has room for the VM, and all rules let it come."""
    where = placed(running(state), at)
    return any(
        fits(state, (*at, one.id), one.id)
        and all(lets(each, state, where, NEW, one.id) for each in state.placement_rules)
        for one in state.hosts
    )


def running(state: Snapshot) -> Snapshot:
    return snapshot(*state.hosts, *(one for one in state.vms if one.host), *state.placement_rules)


def fewest(state: Snapshot) -> int | None:
    """The fewest migrations after which it starts; None if none lead there."""
    others = running(state)
    start: At = tuple(one.host or "" for one in others.vms)
    cost, queue = {start: 0}, deque([start])
    while queue:
        at = queue.popleft()
        if starts(state, at):
            return cost[at]
        for after in migrations(others, at):
            if after not in cost:
                cost[after] = cost[at] + 1
                queue.append(after)
    return None


@pytest.mark.parametrize("kind", KINDS)
def test_no_fewer_migrations_would_do(kind: str) -> None:
    found: set[bool] = set()

    @FEW
    @given(states(kind))
    def plan(state: Snapshot) -> None:
        room, best = make_room(state, NEW), fewest(state)
        assert (room.host is None) is (best is None)
        others = running(state)
        at: At = tuple(one.host or "" for one in others.vms)
        for step in room.plan.steps:
            (moved,) = step.vms
            number = [one.id for one in others.vms].index(moved)
            after = (*at[:number], step.target, *at[number + 1 :])
            assert fits(others, after, step.target)
            assert legal(others, at, after)
            at = after
        if best is not None:
            assert room.plan.proven
            assert room.plan.migrations == best
            assert starts(state, at)
        found.add(best is None)

    plan()
    assert found


def test_another_member_makes_room_on_the_only_host_that_fits() -> None:
    state = snapshot(
        host("h1", free_mb=8192), host("h2", free_mb=1024), vm("a", "h1"), vm("big", needs_mb=4096),
        rule("few", "at_most_per_host", "a big", most=1),
    )  # fmt: skip
    room = make_room(state, "big")
    assert room.host == "h1"
    assert [(step.vms, step.target) for step in room.plan.steps] == [(("a",), "h2")]
    assert room.plan.proven
