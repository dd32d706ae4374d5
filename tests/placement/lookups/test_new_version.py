"""What a snapshot keeps of the one before it is what one decoded again would find out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.engine.consistency import consistent
from ovirt_placement.inventory.publication import EMPTY, find_changes, with_changes, with_known
from ovirt_placement.lookups.index import prepare, share, with_more_pending
from ovirt_placement.model import Pending, Snapshot, Vm
from ovirt_placement.rules.affinity.groups import groups_of
from tests.builders import TOGETHER, group, host, snapshot, vm
from tests.examples import examples
from tests.integration.worlds import whole_policies, worlds
from tests.placement.lookups.test_more_pending import ENTRIES, answers
from tests.placement.rules.strategies import HOSTS, VMS

CHANGES = st.dictionaries(
    st.sampled_from(VMS), st.tuples(st.sampled_from((None, *HOSTS)), st.integers(1, 4096), st.booleans())
)
#: VMs that are not there before, those that are not there after, and whether all stand in another order.
COMING_AND_GOING = st.tuples(
    st.sets(st.sampled_from(VMS[1:])), st.sets(st.sampled_from(VMS[1:])), st.booleans()
)


def changed(one: Vm, changes: Mapping[str, tuple[str | None, int, bool]]) -> Vm:
    if one.id not in changes:
        return one
    host_id, memory_mb, ha = changes[one.id]
    status = "down" if host_id is None else "up"
    return replace(one, host=host_id, memory_mb=memory_mb, ha=ha, status=status, migrating_to=None)


class Published:
    """Versions as a reader of the inventory finds them: what is as it was is the same object."""

    def __init__(self) -> None:
        self._written = self._known = EMPTY

    def read(self, state: Snapshot, vms: Iterable[Vm]) -> Snapshot:
        """The state with these VMs and no others."""
        reported = consistent(replace(state, vms=tuple(vms)))
        reported = replace(
            reported, pending=tuple(entry for entry in reported.pending if entry.vm in reported.vm_by_id)
        )
        reported = with_known(self._written, reported)
        self._known = with_changes(self._known, find_changes(self._written, reported))
        self._written = reported
        return self._known


def pending(state: Snapshot, entries: list[tuple[str, str]], like: Snapshot) -> Snapshot:
    there = [(name, at) for name, at in entries if name in state.vm_by_id]
    return with_more_pending(state, tuple(Pending(name, at, 512) for name, at in there), like=like)


@settings(deadline=None, max_examples=examples(40))
@given(
    worlds(whole_policies()),
    CHANGES,
    COMING_AND_GOING,
    st.sets(st.sampled_from(HOSTS)),
    ENTRIES,
    ENTRIES,
    st.booleans(),
    st.booleans(),
)
def test_answers_are_those_of_a_snapshot_decoded_again(
    state: Snapshot,
    vms: dict[str, tuple[str | None, int, bool]],
    absent: tuple[set[str], set[str], bool],
    hosts: set[str],
    before: list[tuple[str, str]],
    after: list[tuple[str, str]],
    base_first: bool,
    ahead: bool,
) -> None:
    published, every, groups = Published(), state.vms, state.affinity_groups
    state = published.read(state, (one for one in every if one.id not in absent[0]))
    answers(state)
    older = pending(state, before, like=state)
    answers(older)
    now = replace(
        state,
        hosts=tuple(
            replace(one, free_mb=one.free_mb // 2) if one.id in hosts else one for one in state.hosts
        ),
        affinity_groups=groups,
    )
    in_order = reversed(every) if absent[2] else every
    newer = published.read(now, (changed(one, vms) for one in in_order if one.id not in absent[1]))
    if base_first:
        share(newer, like=older)
    laid = pending(newer, after, like=newer)
    if not base_first:
        share(laid, like=older)
    if ahead:
        prepare(laid, like=older)
    for found in (laid, newer):
        assert answers(found) == answers(replace(found))


def test_what_no_vm_has_changed_is_not_looked_up_again() -> None:
    old = snapshot(host("h"), vm("a", "h"), vm("b"), group("g", TOGETHER, "a b"))
    found = groups_of(old)
    newer = replace(old, vms=(old.vms[0], replace(old.vms[1], host="h")))
    share(newer, like=old)
    assert groups_of(newer) is found


def test_a_vm_that_comes_or_goes_and_that_no_group_names_leaves_all_groups_as_they_were() -> None:
    old = snapshot(host("h"), vm("a", "h"), vm("b"), vm("c"), group("g", TOGETHER, "a b"))
    found = groups_of(old)
    for vms in ((*old.vms, vm("d")), old.vms[:2], (vm("d"), *old.vms), (*old.vms[:2], vm("d"), old.vms[2])):
        newer = replace(old, vms=vms)
        share(newer, like=old)
        assert groups_of(newer) is found
        assert newer.vm_by_id == {one.id: one for one in vms}
