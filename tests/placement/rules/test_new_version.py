"""What a snapshot keeps of the one before it is what one decoded anew would find out."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.model import Pending, Snapshot, Vm, state_file
from ovirt_placement.rules.affinity.membership import groups_of, members
from ovirt_placement.rules.index import prepare, share, with_more_pending
from tests.builders import TOGETHER, cluster, group, host, snapshot, vm
from tests.integration.worlds import whole_policies, worlds
from tests.placement.rules.strategies import HOSTS, VMS
from tests.placement.rules.test_more_pending import ENTRIES, answers

CHANGES = st.dictionaries(
    st.sampled_from(VMS), st.tuples(st.sampled_from((None, *HOSTS)), st.integers(1, 4096), st.booleans())
)


def changed(one: Vm, host_id: str | None, memory_mb: int, ha: bool) -> Vm:
    status = "down" if host_id is None else "up"
    return replace(one, host=host_id, memory_mb=memory_mb, ha=ha, status=status, migrating_to=None)


def pending(state: Snapshot, entries: list[tuple[str, str]], like: Snapshot) -> Snapshot:
    return with_more_pending(state, tuple(Pending(name, at, 512) for name, at in entries), like=like)


@settings(deadline=None, max_examples=40)
@given(
    worlds(whole_policies()),
    CHANGES,
    st.sets(st.sampled_from(HOSTS)),
    ENTRIES,
    ENTRIES,
    st.booleans(),
    st.booleans(),
)
def test_answers_are_those_of_a_snapshot_decoded_anew(
    state: Snapshot,
    vms: dict[str, tuple[str | None, int, bool]],
    hosts: set[str],
    before: list[tuple[str, str]],
    after: list[tuple[str, str]],
    base_first: bool,
    ahead: bool,
) -> None:
    answers(state)
    older = pending(state, before, like=state)
    answers(older)
    newer = replace(
        state,
        vms=tuple(changed(one, *vms[one.id]) if one.id in vms else one for one in state.vms),
        hosts=tuple(
            replace(one, free_mb=one.free_mb // 2) if one.id in hosts else one for one in state.hosts
        ),
    )
    if base_first:
        share(newer, like=older)
    laid = pending(newer, after, like=newer)
    if not base_first:
        share(laid, like=older)
    if ahead:
        prepare(laid, like=older)
    for found in (laid, newer):
        assert answers(found) == answers(state_file.loads(state_file.dumps(found)))


def test_a_vm_in_another_cluster_is_in_no_group_of_its_old_one() -> None:
    old = snapshot(cluster(), cluster("c2"), host("h"), vm("a", "h"), vm("b"), group("g", TOGETHER, "a b"))
    groups_of(old)
    elsewhere = replace(old, vms=(old.vms[0], replace(old.vms[1], cluster="c2")))
    share(elsewhere, like=old)
    assert members(elsewhere)["g"] == ("a",)


def test_what_no_vm_has_changed_is_not_looked_up_again() -> None:
    old = snapshot(host("h"), vm("a", "h"), vm("b"), group("g", TOGETHER, "a b"))
    found = groups_of(old)
    newer = replace(old, vms=(old.vms[0], replace(old.vms[1], host="h")))
    share(newer, like=old)
    assert groups_of(newer) is found
