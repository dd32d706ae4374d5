"""Whatever was published before, and whatever a reader missed of it, it finds exactly what was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.inventory.publication import EMPTY, Changes, find_changes, with_changes, with_known
from ovirt_placement.model import FrozenKeys, PlacementKey, Snapshot, StickyCopy, Vm
from tests import builders
from tests.examples import examples
from tests.placement.model.full_state import full_state, loaded

LISTS = (
    "hosts", "vms", "affinity_groups", "affinity_labels", "placement_keys", "frozen_keys", "sticky_copies"
)  # fmt: skip
FRAME = ("clusters", "pending")

ids = st.sampled_from([*"abcdefgh", "å", "", "a" * 300])
small = st.integers(0, 2)


def some(record: Callable[..., Any], *values: Any, by: Callable[[Any], Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.builds(record, *values), max_size=8, unique_by=by).map(tuple)


hosts = some(lambda host, free: builders.host(host, free_mb=free), ids, small, by=lambda host: host.id)
vms = some(lambda vm, on: builders.vm(vm, on), ids, st.sampled_from([None, "h1", "h2"]), by=lambda vm: vm.id)
groups = some(
    lambda group, vms: builders.group(group, vms=vms),
    ids, st.sampled_from(["", "a", "a b"]),
    by=lambda group: group.id,
)  # fmt: skip
labels = some(
    lambda label, vms: builders.label(label, vms=vms),
    ids,
    st.sampled_from(["", "a"]),
    by=lambda label: label.id,
)
keys = some(
    lambda resource, name, value: PlacementKey(
        level="server", resource=resource, key_class="system", name=name, value=value
    ),
    ids, st.sampled_from(["A", "B"]), st.sampled_from([1.0, "x"]),
    by=lambda key: (key.resource, key.name),
)  # fmt: skip
frozen = some(
    lambda vm, value: FrozenKeys(vm=vm, keys=(("A", value), ("B", 0.0))),
    ids, st.floats(0, 1),
    by=lambda each: each.vm,
)  # fmt: skip
copies = some(
    lambda vm, name: StickyCopy(vm=vm, name=name, value=1.0, weight=60.0),
    ids, st.sampled_from(["A", "B"]),
    by=lambda copy: (copy.vm, copy.name),
)  # fmt: skip
snapshots = st.builds(
    Snapshot,
    clusters=st.lists(st.builds(builders.cluster, ids), max_size=2).map(tuple),
    affinity_groups=groups, affinity_labels=labels, hosts=hosts, vms=vms, placement_keys=keys,
    frozen_keys=frozen, sticky_copies=copies,
)  # fmt: skip
#: Lists that are others from a version on, the places of VMs and frozen sets that change where they stand,
#: and which of three readers look.
changes = st.fixed_dictionaries(
    {},
    optional={
        "hosts": hosts, "vms": vms, "affinity_groups": groups, "affinity_labels": labels,
        "placement_keys": keys, "frozen_keys": frozen, "sticky_copies": copies,
    },
)  # fmt: skip
places = st.sets(st.integers(0, 7), max_size=3)
histories = st.lists(st.tuples(changes, places, st.sets(st.sampled_from(range(3)))), max_size=6)


def changed(snapshot: Snapshot, at: set[int]) -> Snapshot:
    """The VMs and frozen sets in these places say something else."""
    return replace(
        snapshot,
        vms=tuple(
            replace(vm, memory_mb=vm.memory_mb + 1) if place in at else vm
            for place, vm in enumerate(snapshot.vms)
        ),
        frozen_keys=tuple(
            FrozenKeys(each.vm, (*each.keys, ("C", 1.0))) if place in at else each
            for place, each in enumerate(snapshot.frozen_keys)
        ),
    )


@settings(deadline=None, max_examples=examples(60))
@given(snapshots, histories)
def test_every_reader_finds_what_was_written_and_keeps_what_stayed(
    first: Snapshot, history: list[tuple[dict[str, Any], set[int], set[int]]]
) -> None:
    snapshot, readers = first, [EMPTY] * 3
    # What is known to the service of a reader's version is what was written, not what was read.
    written = [EMPTY] * 3
    for change, at, asking in ({}, set(), {0, 1, 2}), *history:
        snapshot = with_known(snapshot, changed(replace(snapshot, **change), at))
        for reader in asking:
            sent = msgspec.msgpack.encode(find_changes(written[reader], snapshot))
            after = with_changes(readers[reader], msgspec.msgpack.decode(sent, type=Changes))
            assert after == snapshot
            assert_shared(readers[reader], after)
            readers[reader], written[reader] = after, snapshot


def assert_shared(before: Snapshot, after: Snapshot) -> None:
    """What is equal in both is one object: each list, each host, VM, group and label."""
    for field in (*LISTS, *FRAME):
        one, other = getattr(before, field), getattr(after, field)
        assert (one is other) == (one == other)
    for field in ("host_by_id", "vm_by_id", "group_by_id", "label_by_id"):
        known = getattr(before, field)
        for identity, record in getattr(after, field).items():
            assert (known.get(identity) is record) == (known.get(identity) == record)


def test_of_a_long_list_only_the_records_that_differ_are_sent() -> None:
    vms = [builders.vm(f"v{number}", "h1") for number in range(1000)]
    host = builders.host("h1")
    before = builders.snapshot(host, *vms)
    moved = replace(vms[7], memory_mb=7)
    found = find_changes(before, with_known(before, builders.snapshot(host, *vms[:7], moved, *vms[8:])))
    assert (found.content.keys(), found.orders) == ({"vms"}, {})
    assert [msgspec.msgpack.decode(part, type=tuple[Vm, ...]) for part in found.content["vms"]] == [(moved,)]
    found = find_changes(before, with_known(before, builders.snapshot(host, *vms[:-1])))
    assert (found.content, found.orders.keys()) == ({"vms": []}, {"vms"})


def test_a_whole_state_survives_in_parts() -> None:
    snapshot = loaded(full_state())
    many = replace(snapshot, vms=tuple(replace(snapshot.vms[0], id=f"v{number}") for number in range(1001)))
    for one in (snapshot, many):
        assert with_changes(EMPTY, find_changes(EMPTY, one)) == one


@pytest.mark.parametrize(
    "damage",
    [
        Changes({"vms": []}, {"vms": ["x"]}),
        Changes({"nothing": [msgspec.Raw(b"\x90")]}),
        Changes({"vms": [msgspec.Raw(b"\x91\x01")]}),
        Changes({"clusters": []}),
    ],
)
def test_what_are_no_changes_is_refused(damage: Changes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        with_changes(EMPTY, damage)
