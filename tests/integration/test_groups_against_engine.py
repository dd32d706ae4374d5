"""What `ovirt-placement groups` refuses is what the simulated engine refuses, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime
from itertools import combinations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.answers.groups.check import GroupJudgement, judge
from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_simulator.core.commands.groups import Members
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.rejections import Rejected
from tests.builders import APART, TOGETHER, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.rules.strategies import FOREIGN, groups, snapshots

START = datetime(2026, 3, 1, tzinfo=UTC)

#: Further VMs of the group: none, one of another cluster, one that may be a member already.
MORE_VMS = st.sampled_from([(), (), (), (FOREIGN,), ("a",)])
NAMES = st.sampled_from(["new", "new", "g0", "g1"])


def is_refused(command: Callable[..., object], identity: str, group: AffinityGroup) -> bool:
    fields = ("name", "vms_rule", "hosts_rule", *(members.value for members in Members))
    try:
        command(identity, **{name: getattr(group, name) for name in fields})
    except Rejected:
        return True
    return False


@given(snapshots(most_groups=3), groups("new"), NAMES, MORE_VMS)
def test_a_new_group_is_refused_exactly_where_the_engine_refuses_it(
    state: Snapshot, group: AffinityGroup, name: str, more: tuple[str, ...]
) -> None:
    group = replace(group, id="", name=name, vms=(*group.vms, *more))
    judgement = judge(state, group)
    add = Engine.from_snapshot(state, clock=START).affinity_groups.add
    assert bool(judgement.refusals or judgement.unchecked) == is_refused(add, group.cluster, group)


@given(snapshots(most_groups=3).filter(lambda state: bool(state.affinity_groups)), groups("g0"), MORE_VMS)
@pytest.mark.system
def test_a_change_is_refused_exactly_where_the_engine_refuses_it(
    state: Snapshot, group: AffinityGroup, more: tuple[str, ...]
) -> None:
    group = replace(group, vms=(*group.vms, *more))
    judgement = judge(state, group)
    edit = Engine.from_snapshot(state, clock=START).affinity_groups.edit
    assert bool(judgement.refusals or judgement.unchecked) == is_refused(edit, "g0", group)


@pytest.mark.system
@settings(max_examples=examples(200))
@example(
    state=snapshot(
        host("h1"),
        *map(vm, "abc"),
        group("g0", TOGETHER, "a b"),
        group("g1", APART, "a b c"),
    ),
    group=group("new", TOGETHER, "a c"),
)
@given(snapshots(most_groups=4), groups("new"))
def test_each_group_that_is_named_clashes_with_it(state: Snapshot, group: AffinityGroup) -> None:
    """Next to some of the others, the engine refuses only both together."""
    group = replace(group, id="", name="new")
    empty = replace(group, vms=(), vm_labels=())
    others = {one.id for one in state.affinity_groups if one.cluster == group.cluster}
    for name in named_alongside(judge(state, group)):
        assert any(
            refuses(state, group, (*alongside, name))
            and not refuses(state, group, alongside)
            and not refuses(state, empty, (*alongside, name))
            for alongside in subsets(others - {name})
        )


def named_alongside(judgement: GroupJudgement) -> set[str]:
    """The groups that refusals name together with the new one."""
    ours = (text for text in judgement.unchecked if "(groups new, " in text)
    return {name for text in ours for name in re.findall(r"\(groups new, ([^;]*);", text)[0].split(", ")}


def subsets(ids: Collection[str]) -> Iterator[tuple[str, ...]]:
    for size in range(len(ids) + 1):
        yield from combinations(sorted(ids), size)


def refuses(state: Snapshot, group: AffinityGroup, alongside: Collection[str]) -> bool:
    """Whether the engine refuses a group where there are but these others."""
    kept = tuple(one for one in state.affinity_groups if one.id in alongside)
    engine = Engine.from_snapshot(replace(state, affinity_groups=kept), clock=START)
    return is_refused(engine.affinity_groups.add, group.cluster, group)
