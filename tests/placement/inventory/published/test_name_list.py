"""The list of names for shells: one line each, rewritten only when names change, gone with the service."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.inventory.publication import NameList
from ovirt_placement.model import Snapshot
from tests.placement.model.full_state import full_state, loaded


@pytest.fixture
def snapshot() -> Snapshot:
    read: Snapshot = loaded(full_state())
    return read


@pytest.fixture
def names(tmp_path: Path) -> NameList:
    return NameList(tmp_path)


def named(snapshot: Snapshot, *names: str) -> Snapshot:
    """The snapshot with VMs of these names, and without groups."""
    one = snapshot.vms[0]
    vms = tuple(replace(one, id=f"v{at}", name=name) for at, name in enumerate(names))
    hosts = tuple(replace(one, name=f"host {at}") for at, one in enumerate(snapshot.hosts[:1]))
    clusters = tuple(replace(one, name="blue") for one in snapshot.clusters[:1])
    groups = tuple(replace(one, name="apart") for one in snapshot.affinity_groups[:1])
    return replace(snapshot, vms=vms, hosts=hosts, clusters=clusters, affinity_groups=groups)


def test_names_stand_in_a_file_for_the_group(tmp_path: Path, names: NameList, snapshot: Snapshot) -> None:
    names.publish(named(snapshot, "b", "a b", "b"))
    file = tmp_path / "names"
    assert file.read_text() == "cluster\tblue\ngroup\tapart\nhost\thost 0\nvm\ta b\nvm\tb\n"
    assert file.stat().st_mode & 0o777 == 0o640


def test_what_a_line_cannot_hold_is_left_out(tmp_path: Path, names: NameList, snapshot: Snapshot) -> None:
    hostile = ("a\nvm\tb", "a\tb", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u202e", "-rf", "", "x" * 256)
    names.publish(named(snapshot, *hostile, "x" * 255, "ü"))
    listed = (tmp_path / "names").read_text().split("\n")
    assert [line for line in listed if line.startswith("vm")] == [f"vm\t{'x' * 255}", "vm\tü"]


def test_it_is_bounded(tmp_path: Path, names: NameList, snapshot: Snapshot) -> None:
    names.publish(named(snapshot, *(f"v{at}" for at in range(100_010))))
    assert (tmp_path / "names").read_bytes().count(b"\n") == 100_000


def test_it_is_written_again_only_when_names_change(
    tmp_path: Path, names: NameList, snapshot: Snapshot
) -> None:
    file, before = tmp_path / "names", named(snapshot, "a", "b")
    names.publish(before)
    first = file.stat()
    moved = tuple(replace(one, memory_mb=one.memory_mb + 1) for one in before.vms)
    names.publish(replace(before, vms=moved))
    assert file.stat() == first
    names.publish(named(snapshot, "a", "c"))
    assert file.stat().st_ino != first.st_ino
    assert "vm\tc\n" in file.read_text()


def test_where_it_cannot_be_written_the_next_one_is(
    tmp_path: Path, names: NameList, snapshot: Snapshot
) -> None:
    (tmp_path / "names").mkdir()
    names.publish(named(snapshot, "a"))
    assert [path.name for path in tmp_path.iterdir()] == ["names"]
    (tmp_path / "names").rmdir()
    names.publish(named(snapshot, "b"))
    assert "vm\tb\n" in (tmp_path / "names").read_text()


def test_it_goes_with_the_service(tmp_path: Path, names: NameList, snapshot: Snapshot) -> None:
    names.publish(snapshot)
    names.withdraw()
    assert list(tmp_path.iterdir()) == []
