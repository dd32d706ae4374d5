"""What a reader gets by the version that it has, what is saved, and the list of names for shells."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.publication import (
    EMPTY,
    Changes,
    Moments,
    Publication,
    Refresh,
    State,
    ask,
    ask_moments,
    find_changes,
    now,
    with_changes,
    with_known,
)
from ovirt_placement.inventory.service import publisher
from ovirt_placement.inventory.service.publisher import NameList
from ovirt_placement.model import FrozenKeys, PlacementKey, Snapshot, StickyCopy, Vm
from tests import builders
from tests.builders import host, snapshot, vm
from tests.examples import examples
from tests.kit.served import ServedInventory
from tests.placement.model.full_state import full_state, loaded
from tests.plugins.published import Publisher

FULL: Snapshot = loaded(full_state())
FRAME = ("clusters", "pending")

ids = st.sampled_from([*"abcdefgh", "å", "", "a" * 300])
small = st.integers(0, 2)


def some(record: Callable[..., Any], *values: Any, by: Callable[[Any], Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.builds(record, *values), max_size=8, unique_by=by).map(tuple)


hosts = some(lambda host, free: builders.host(host, free_mb=free), ids, small, by=lambda host: host.id)
vms = some(lambda vm, on: builders.vm(vm, on), ids, st.sampled_from([None, "h1", "h2"]), by=lambda vm: vm.id)
groups = some(
    lambda group, vms: builders.group(group, vms=vms),
    *(ids, st.sampled_from(["", "a", "a b"])),
    by=lambda group: group.id,
)
labels = some(
    lambda label, vms: builders.label(label, vms=vms),
    *(ids, st.sampled_from(["", "a"])),
    by=lambda label: label.id,
)
keys = some(
    lambda resource, name, value: PlacementKey("server", resource, "system", name, value),
    *(ids, st.sampled_from(["A", "B"]), st.sampled_from([1.0, "x"])),
    by=lambda key: (key.resource, key.name),
)
frozen = some(
    lambda vm, value: FrozenKeys(vm, (("A", value), ("B", 0.0))),
    *(ids, st.floats(0, 1)),
    by=lambda each: each.vm,
)
copies = some(
    lambda vm, name: StickyCopy(vm, name, 1.0, 60.0),
    *(ids, st.sampled_from(["A", "B"])),
    by=lambda copy: (copy.vm, copy.name),
)
drawn = {
    "hosts": hosts, "vms": vms, "affinity_groups": groups, "affinity_labels": labels,
    "placement_keys": keys, "frozen_keys": frozen, "sticky_copies": copies,
}  # fmt: skip
clusters = st.lists(st.builds(builders.cluster, ids), max_size=2).map(tuple)
snapshots = st.builds(Snapshot, clusters=clusters, **drawn)
#: Lists that are others from a version on, the places of VMs and frozen sets that change where they stand,
#: and which of three readers look.
changes = st.fixed_dictionaries({}, optional=drawn)
places = st.sets(st.integers(0, 7), max_size=3)
histories = st.lists(st.tuples(changes, places, st.sets(st.sampled_from(range(3)))), max_size=6)


def changed(snapshot: Snapshot, at: set[int]) -> Snapshot:
    """The VMs and frozen sets in these places say something else."""
    vms, frozen = list(snapshot.vms), list(snapshot.frozen_keys)
    for place in at & {*range(len(vms))}:
        vms[place] = replace(vms[place], memory_mb=vms[place].memory_mb + 1)
    for place in at & {*range(len(frozen))}:
        frozen[place] = FrozenKeys(frozen[place].vm, (*frozen[place].keys, ("C", 1.0)))
    return replace(snapshot, vms=tuple(vms), frozen_keys=tuple(frozen))


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
    for field in (*drawn, *FRAME):
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
    many = replace(FULL, vms=tuple(replace(FULL.vms[0], id=f"v{number}") for number in range(1001)))
    for one in (FULL, many):
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


STATE = snapshot(host("h1"), host("h2"), *(vm(f"v{number}", "h1") for number in range(20)))
OTHER = replace(STATE, vms=(replace(STATE.vms[0], name="other"), *STATE.vms[1:]))


@pytest.fixture
def served(tmp_path: Path) -> ServedInventory:
    found = ServedInventory(Publisher.configured(tmp_path))
    found.publish(STATE, Moments(now(), store_asked_at=now()))
    return found


def asked(served: ServedInventory, known: int = 0) -> State:
    return ask(served.config.inventory.directory, Refresh(0.0, known=known), 30.0, State)


def test_who_has_nothing_gets_all_and_who_has_the_version_nothing(served: ServedInventory) -> None:
    first = asked(served)
    assert (first.since, {*first.changes.content} >= {"hosts", "vms"}) == (0, True)
    again = asked(served, first.version)
    assert (again.version, again.since, again.changes) == (first.version, first.version, Changes())
    # A service that was killed may have saved less than its readers had.
    later = asked(served, first.version + 1)
    assert (later.since, later.changes) == (0, first.changes)
    served.publish(OTHER, Moments(now(), store_asked_at=now()))
    after = asked(served, first.version)
    assert after.version > first.version
    assert (after.since, {*after.changes.content}) == (first.version, {"vms"})
    assert inventory.snapshot(config=served.config) == OTHER


def test_moments_alone_cost_no_content(served: ServedInventory) -> None:
    moments = ask_moments(served.config.inventory.directory, 30.0)
    assert moments is not None
    assert moments.as_of <= now()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    publisher.save_state(tmp_path, Publication(7, Moments(now(), store_asked_at=now()), STATE))
    return tmp_path


def test_what_was_saved_is_restored(folder: Path) -> None:
    found = publisher.restore_state(folder, now() - 60.0)
    assert found is not None
    assert (found.version, found.snapshot) == (7, STATE)
    assert 0.0 <= found.age_seconds < 60.0


def test_what_is_too_old_damaged_of_another_run_or_engine_or_not_there_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert publisher.restore_state(folder, now() + 1.0) is None
    assert publisher.restore_state(folder / "absent", 0.0) is None
    assert publisher.restore_state(folder, 0.0, "https://other.example.com/ovirt-engine/api") is None
    with monkeypatch.context() as patch:
        patch.setattr(publisher, "boot_id", lambda: b"another")
        assert publisher.restore_state(folder, 0.0) is None
    file = folder / publisher.STATE_FILE
    whole = file.read_bytes()
    for damaged in (whole[:-1], b"", whole.replace(b"v7", b"v8")):
        file.write_bytes(damaged)
        assert publisher.restore_state(folder, 0.0) is None


@pytest.fixture
def names(tmp_path: Path) -> NameList:
    return NameList(tmp_path)


def named(*names: str) -> Snapshot:
    """The full state with VMs of these names."""
    vms = tuple(replace(FULL.vms[0], id=f"v{at}", name=name) for at, name in enumerate(names))
    others = {"hosts": "host 0", "clusters": "blue", "affinity_groups": "apart"}
    return replace(
        FULL,
        vms=vms,
        **{kind: (replace(getattr(FULL, kind)[0], name=name),) for kind, name in others.items()},
    )


def test_names_stand_in_a_file_for_the_group(tmp_path: Path, names: NameList) -> None:
    names.publish(named("b", "a b", "b"))
    file = tmp_path / "names"
    assert file.read_text() == "cluster\tblue\ngroup\tapart\nhost\thost 0\nvm\ta b\nvm\tb\n"
    assert file.stat().st_mode & 0o777 == 0o640
    names.publish(named(*(f"v{at}" for at in range(100_010))))
    assert file.read_bytes().count(b"\n") == 100_000, "it is bounded"
    names.publish(FULL)
    names.withdraw()
    assert list(tmp_path.iterdir()) == []


def test_what_a_line_cannot_hold_is_left_out(tmp_path: Path, names: NameList) -> None:
    hostile = ("a\nvm\tb", "a\tb", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u202e", "-rf", "", "x" * 256)
    names.publish(named(*hostile, "x" * 255, "ü"))
    listed = (tmp_path / "names").read_text().split("\n")
    assert [line for line in listed if line.startswith("vm")] == [f"vm\t{'x' * 255}", "vm\tü"]


def test_it_is_written_again_only_when_names_change(tmp_path: Path, names: NameList) -> None:
    file, before = tmp_path / "names", named("a", "b")
    names.publish(before)
    first = file.stat()
    moved = tuple(replace(one, memory_mb=one.memory_mb + 1) for one in before.vms)
    names.publish(replace(before, vms=moved))
    assert file.stat() == first
    names.publish(named("a", "c"))
    assert file.stat().st_ino != first.st_ino
    assert "vm\tc\n" in file.read_text()


def test_where_it_cannot_be_written_the_next_one_is(tmp_path: Path, names: NameList) -> None:
    (tmp_path / "names").mkdir()
    names.publish(named("a"))
    assert [path.name for path in tmp_path.iterdir()] == ["names"]
    (tmp_path / "names").rmdir()
    names.publish(named("b"))
    assert "vm\tb\n" in (tmp_path / "names").read_text()
