"""Whatever was published before, and whatever a reader missed of it, it finds exactly what was written."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.inventory import sections
from ovirt_placement.inventory.sections import Decoded, Encoder, Section, decode
from ovirt_placement.model import FrozenKeys, PlacementKey, Snapshot, StickyCopy
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


def read(encoded: tuple[Section, ...], known: Decoded | None) -> Decoded:
    return decode(tuple(each.version for each in encoded), lambda at: encoded[at].content, known)


@settings(deadline=None, max_examples=examples(60))
@given(snapshots, histories)
def test_every_reader_finds_what_was_written_and_keeps_what_stayed(
    first: Snapshot, history: list[tuple[dict[str, Any], set[int], set[int]]]
) -> None:
    encoder, snapshot = Encoder(), first
    known: list[Decoded | None] = [None, None, None]
    for version, (change, at, readers) in enumerate([({}, set(), {0, 1, 2}), *history], 1):
        snapshot = changed(replace(snapshot, **change), at)
        encoded = encoder.encode(snapshot, version)
        assert len(encoded) == sections.COUNT
        for reader in readers:
            before = known[reader]
            after = known[reader] = read(encoded, before)
            assert after.snapshot == snapshot
            if before is not None:
                assert_shared(before.snapshot, after.snapshot)


def assert_shared(before: Snapshot, after: Snapshot) -> None:
    """What is equal in both is one object: each list, each host, VM, group and label."""
    for field in (*LISTS, *FRAME):
        one, other = getattr(before, field), getattr(after, field)
        assert (one is other) == (one == other)
    for field in ("host_by_id", "vm_by_id", "group_by_id", "label_by_id"):
        known = getattr(before, field)
        for identity, record in getattr(after, field).items():
            assert (known.get(identity) is record) == (known.get(identity) == record)


@given(snapshots, snapshots)
def test_only_what_changed_is_a_new_version_and_is_asked_for(one: Snapshot, other: Snapshot) -> None:
    encoder = Encoder()
    first = encoder.encode(one, 1)
    known = read(first, None)
    second = encoder.encode(other, 2)
    asked: list[int] = []

    def content(at: int) -> bytes:
        asked.append(at)
        return second[at].content

    assert decode(tuple(each.version for each in second), content, known).snapshot == other
    assert all(first[at].content != second[at].content for at in asked)
    assert all(first[at] == second[at] for at in range(sections.COUNT) if at not in asked)


def test_one_vm_that_comes_or_goes_changes_its_chunk_and_the_order_alone() -> None:
    vms = [builders.vm(f"v{number}", "h1") for number in range(1000)]
    host = builders.host("h1")
    encoder = Encoder()
    before = encoder.encode(builders.snapshot(host, *vms), 1)
    after = encoder.encode(builders.snapshot(host, *vms[:500], *vms[501:], builders.vm("new")), 2)
    changed = [one for one, other in zip(after, before, strict=True) if one != other]
    assert len(changed) <= 3
    assert {each.version for each in changed} == {2}


def test_a_whole_state_survives() -> None:
    snapshot = loaded(full_state())
    assert read(Encoder().encode(snapshot, 1), None).snapshot == snapshot


def test_every_process_deals_records_out_alike() -> None:
    """Else a service that restarts would have every reader decode all again, and readers would disagree."""
    script = (
        "from ovirt_placement.inventory.sections import Encoder; from tests import builders;"
        "print([len(each.content) for each in Encoder().encode(builders.snapshot(builders.vm('v')), 1)])"
    )
    command = [sys.executable, "-c", script]
    printed = {subprocess.run(command, capture_output=True, check=True).stdout for _ in range(2)}
    assert len(printed) == 1


@pytest.mark.parametrize("damage", [b"", b"\xff" * 3, b"\x00\x00", b"\x00" * 9])
def test_what_is_no_order_is_refused(damage: bytes) -> None:
    encoded = list(Encoder().encode(builders.snapshot(*map(builders.host, "abc")), 1))
    assert len(encoded[1].content) == 3
    encoded[1] = Section(damage, 2)
    with pytest.raises(ValueError, match=r"places|range|zip"):
        read(tuple(encoded), None)
