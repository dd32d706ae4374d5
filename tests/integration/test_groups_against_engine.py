"""Of affinity groups what is refused and conflicts is what the simulated engine says."""

import re
from collections.abc import Callable, Collection, Iterator
from itertools import combinations

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.answers.group_changes import GroupJudgement, judge
from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.rules.affinity.conflicts import Conflict, ConflictType
from ovirt_placement.rules.affinity.conflicts import find_conflicts as find_ours
from ovirt_simulator.core.affinity import Flat
from ovirt_simulator.core.affinity import find_conflicts as find_engines
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import Rejected
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.rules.strategies import FOREIGN, groups, snapshots
from tests.simulator.core.engines import EVENT_NAMES, START

#: Further VMs of the group: none, one of another cluster, one that may be a member already.
MORE_VMS = st.sampled_from([(), (), (), (FOREIGN,), ("a",)])
NAMES = st.sampled_from(["new", "new", "g0", "g1"])


def is_refused(command: Callable[..., object], identity: str, group: AffinityGroup) -> bool:
    fields = ("name", "vms_rule", "hosts_rule", "vms", "hosts", "vm_labels", "host_labels")
    try:
        command(identity, **{name: getattr(group, name) for name in fields})
    except Rejected:
        return True
    return False


@pytest.mark.parametrize("command", ["add", pytest.param("edit", marks=pytest.mark.system)])
@given(snapshots(most_groups=3), groups("g0"), NAMES, MORE_VMS)
def test_a_group_is_refused_exactly_where_the_engine_refuses_it(
    command: str, state: Snapshot, group: AffinityGroup, name: str, more: tuple[str, ...]
) -> None:
    assume(command == "add" or state.affinity_groups)
    identity, place = ("", group.cluster) if command == "add" else ("g0", "g0")
    group = replace(group, id=identity, name=name, vms=(*group.vms, *more))
    judgement = judge(state, group)
    run = getattr(Engine.from_snapshot(state, clock=START).affinity_groups, command)
    assert bool(judgement.refusals or judgement.unchecked) == is_refused(run, place, group)


@pytest.mark.system
@settings(max_examples=examples(200))
@example(
    state=snapshot(host("h1"), *map(vm, "abc"), group("g0", TOGETHER, "a b"), group("g1", APART, "a b c")),
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


#: Types of which the engine reports exactly what is one.
ALIKE = {
    ConflictType.HARD_POSITIVE_AND_NEGATIVE_HOSTS, ConflictType.POSITIVE_AND_NEGATIVE_HOSTS,
    ConflictType.HOSTS_AGAINST_TOGETHER, ConflictType.TOGETHER_AGAINST_APART,
}  # fmt: skip
Described = tuple[str, frozenset[str], frozenset[str], frozenset[str], frozenset[str]]


def of_engine(state: Snapshot) -> set[Described]:
    groups = []
    for one in state.affinity_groups:
        hosts = frozenset(state.group_hosts[one.id])
        own = (vm for vm in state.group_vms[one.id] if state.vm_by_id[vm].cluster == one.cluster)
        groups.append(
            Flat(
                name=one.id,
                vms=frozenset(own),
                hosts=hosts,
                vm_polarity=one.vms_rule.positive if one.vms_rule.enabled else None,
                host_polarity=one.hosts_rule.positive if one.hosts_rule.enabled and hosts else None,
                hosts_enforcing=one.hosts_rule.enforcing,
            )
        )
    return {
        (EVENT_NAMES[found.code], found.groups, found.vms, found.hosts, found.negative_vms)
        for found in find_engines(groups)
    }


def described(found: Conflict) -> Described:
    return (
        str(found.type), frozenset(found.groups), frozenset(found.vms), frozenset(found.hosts),
        frozenset(found.negative_vms),
    )  # fmt: skip


@given(snapshots(most_groups=4))
def test_types_that_the_engine_judges_right_are_the_same(state: Snapshot) -> None:
    alike = {str(one) for one in ALIKE}
    ours = {described(found) for found in find_ours(state, CLUSTER) if found.type in ALIKE}
    assert ours == {found for found in of_engine(state) if found[0] in alike}


@given(snapshots(most_groups=4))
def test_vm_without_a_common_host_is_among_those_that_the_engine_warns_of(state: Snapshot) -> None:
    for found in find_ours(state, CLUSTER):
        if found.type is ConflictType.NO_COMMON_HOST:
            (engines,) = (one for one in of_engine(state) if one[0] == str(found.type))
            assert set(found.vms) <= engines[2]
            assert set(found.groups) <= engines[1]
