"""Look-ups that are carried over equal those of a snapshot decoded again, and nothing else is looked up."""

from collections.abc import Iterable, Mapping
from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.inventory.publication import EMPTY, find_changes, with_changes, with_known
from ovirt_placement.lookups import prepare, share, with_more_pending
from ovirt_placement.model import Pending, Snapshot, Vm, state_file
from ovirt_placement.model.state_file import consistent
from ovirt_placement.rules.affinity.groups import groups_of, hard_positive_group_of, members
from ovirt_placement.rules.catalogue import UNITS, find_violations
from ovirt_placement.rules.elements.placement import World
from ovirt_placement.rules.elements.rule import Sum, UnitKind
from ovirt_placement.rules.elements.verdict import BalanceRequest, Request
from ovirt_placement.rules.placement_keys.hierarchy import keys_by_resource
from ovirt_placement.rules.placement_keys.host_table import host_table
from ovirt_placement.rules.placement_keys.keys import DEFAULTS, KeySettings
from ovirt_placement.rules.placement_rules.in_force import constraints_in
from tests.builders import CLUSTER, TOGETHER, group, host, node_key, rule, snapshot, vm
from tests.examples import examples
from tests.integration.worlds import whole_policies, worlds
from tests.placement.rules.placement_keys.nodes import keyed
from tests.placement.rules.strategies import HOSTS, VMS


def test_look_ups_are_made_again_from_the_new_snapshot() -> None:
    old = snapshot(host("h"), vm("a", "h"), vm("b", "h"), group("g", TOGETHER, "a b"))
    new = snapshot(host("h"), vm("a", "h"), vm("b", "h"), vm("c", "h"), group("g", TOGETHER, "b c"))
    asked = (groups_of, hard_positive_group_of)
    for look_up in asked:
        look_up(old)
    prepare(new, like=old)
    assert new.__dict__.keys() == old.__dict__.keys()
    fresh = snapshot(*new.hosts, *new.vms, *new.affinity_groups)
    ready = [look_up(new) for look_up in asked]
    assert new.__dict__.keys() == old.__dict__.keys(), "nothing was left to be looked up"
    assert ready == [look_up(fresh) for look_up in asked]
    assert members(new)["g"] == ("b", "c")
    bare, after = snapshot(host("h")), snapshot(host("h"))
    prepare(after, like=bare)
    assert not after.__dict__, "nobody asked for anything"


def test_what_stands_in_a_part_that_is_the_same_is_shared() -> None:
    keys = (node_key("h", "A"),)
    old, new = keyed(host("h"), keys=keys), keyed(host("h"), vm("a", "h"), keys=keys)
    other = keyed(host("h"), keys=(node_key("h", "A"),))
    assert new.placement_keys is old.placement_keys
    found = keys_by_resource(old)
    for newer in (new, other):
        share(newer, like=old)
    assert keys_by_resource(new) is found
    assert keys_by_resource(other) is not found
    assert keys_by_resource(other) == found


def test_look_ups_are_kept_for_each_argument() -> None:
    old, new = keyed(host("h"), vm("a", "h")), keyed(host("h"))
    wider = KeySettings(memory_ratio=Fraction(2))
    tables = [host_table(old, settings) for settings in (DEFAULTS, wider)]
    assert host_table(old, KeySettings()) is tables[0]
    prepare(new, like=old)
    ready = new.__dict__.copy()
    found = [host_table(new, settings).capacities[0].uncontended_mb for settings in (DEFAULTS, wider)]
    assert found == [65536, 131072]
    assert new.__dict__ == ready, "nothing was left to be looked up"


_ENTRY = st.tuples(st.sampled_from(VMS), st.sampled_from(HOSTS))
ENTRIES = st.lists(_ENTRY, min_size=1, max_size=4, unique_by=lambda entry: entry[0])


def answers(state: Snapshot) -> list[object]:
    """What every unit, and the search for violations, says about everything."""
    found: list[object] = [find_violations(state, CLUSTER)]
    parameters = {**state.clusters[0].scheduling_properties, "placement_tie": "engine"}
    for unit in UNITS.values():
        for name in VMS:
            request = Request((name,), HOSTS, parameters=parameters, as_engine=True, drawn=HOSTS)
            if unit.kind is UnitKind.FILTER and unit.filter:
                found.append(tuple(unit.filter(state, request)))
            if unit.kind is UnitKind.WEIGHT and unit.weight:
                found.append(tuple(unit.weight(state, request)))
        if unit.balance:
            found.append(unit.balance(state, BalanceRequest(HOSTS, parameters, {})))
    return found


@settings(deadline=None, max_examples=examples(25))
@given(worlds(whole_policies()), ENTRIES, ENTRIES)
def test_answers_with_more_pending_are_those_of_a_snapshot_decoded_again(
    state: Snapshot, first: list[tuple[str, str]], second: list[tuple[str, str]]
) -> None:
    answers(state)
    like = state
    for entries in (first, [*first, *second], second):
        more = tuple(Pending(vm, host, 1024) for vm, host in entries)
        laid = with_more_pending(state, more, like=like)
        fresh = state_file.loads(state_file.dumps(laid))
        assert answers(laid) == answers(fresh)
        like = laid


CHANGES = st.dictionaries(
    st.sampled_from(VMS), st.tuples(st.sampled_from((None, *HOSTS)), st.integers(1, 4096), st.booleans())
)
_SOME = st.sets(st.sampled_from(VMS[1:]))
#: VMs that are not there before, those that are not there after, and whether all stand in another order.
COMING_AND_GOING = st.tuples(_SOME, _SOME, st.booleans())


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
        found = consistent(replace(state, vms=tuple(vms)))
        there = tuple(entry for entry in found.pending if entry.vm in found.vm_by_id)
        found = with_known(self._written, replace(found, pending=there))
        self._known = with_changes(self._known, find_changes(self._written, found))
        self._written = found
        return self._known


def pending(state: Snapshot, entries: list[tuple[str, str]], like: Snapshot) -> Snapshot:
    there = [(name, at) for name, at in entries if name in state.vm_by_id]
    return with_more_pending(state, tuple(Pending(name, at, 512) for name, at in there), like=like)


@settings(deadline=None, max_examples=examples(40))
@given(
    worlds(whole_policies()), CHANGES, COMING_AND_GOING, st.sets(st.sampled_from(HOSTS)), ENTRIES, ENTRIES,
    st.booleans(), st.booleans(),
)  # fmt: skip
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
    fuller = (replace(one, free_mb=one.free_mb // 2) if one.id in hosts else one for one in state.hosts)
    now = replace(state, hosts=tuple(fuller), affinity_groups=groups)
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


def test_vms_that_start_and_those_that_come_or_go_and_no_group_names_leave_all_groups_as_they_were() -> None:
    old = snapshot(host("h"), vm("a", "h"), vm("b"), vm("c"), group("g", TOGETHER, "a b"))
    found = groups_of(old)
    started = (old.vms[0], replace(old.vms[1], host="h"), old.vms[2])
    come = (*old.vms, vm("d")), (vm("d"), *old.vms), (*old.vms[:2], vm("d"), old.vms[2])
    for vms in (started, old.vms[:2], (*old.vms[:2], vm("d")), *come):
        newer = replace(old, vms=vms)
        share(newer, like=old)
        assert groups_of(newer) is found
        assert newer.vm_by_id == {one.id: one for one in vms}


def test_what_vms_bring_is_read_again_only_once_one_brings_something_else() -> None:
    """A failure is judged in a thousand states, and each host may have a rule of its own."""
    state = snapshot(
        host("h1"), host("h2"), vm("a", "h1", vcpus=2), vm("b", "h1"),
        rule("one", "capacity", hosts="h1", most=9, counted="vcpus"),
        rule("two", "capacity", hosts="h2", most=9, counted="vcpus"),
    )  # fmt: skip

    def brought(state: Snapshot) -> list[Mapping[str, int]]:
        return [one.form.amounts for one in constraints_in(state, CLUSTER) if isinstance(one.form, Sum)]

    first, second = brought(state)
    assert first is second
    assert brought(World(state).moved(("a",), "h2").snapshot)[0] is first
    for vms in (
        (state.vms[0], replace(state.vms[1], vcpus=4)),
        (state.vms[0], replace(state.vms[1], cluster="another")),
        (*state.vms, vm("c", "h2")),
        state.vms[:1],
    ):
        now = replace(state, vms=vms)
        prepare(now, like=state)
        assert brought(now) == brought(replace(state, vms=vms))
        assert brought(now) != [first, second]
