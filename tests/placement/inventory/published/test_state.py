"""What a reader gets at the socket, by the version that it has; what a service begins with again."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement import inventory
from ovirt_placement.inventory import publication
from ovirt_placement.inventory.protocol import Refresh, State, ask, ask_moments
from ovirt_placement.inventory.publication import Changes, Moments, Publication, now
from tests.builders import host, snapshot, vm
from tests.kit.served import ServedInventory
from tests.plugins.published import Publisher

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


def test_who_has_an_earlier_version_gets_what_has_changed(served: ServedInventory) -> None:
    before = asked(served)
    served.publish(OTHER, Moments(now(), store_asked_at=now()))
    after = asked(served, before.version)
    assert after.version > before.version
    assert (after.since, {*after.changes.content}) == (before.version, {"vms"})
    assert inventory.snapshot(config=served.config) == OTHER


def test_who_has_a_later_version_gets_all(served: ServedInventory) -> None:
    """A service that was killed may have saved less than its readers had."""
    first = asked(served)
    again = asked(served, first.version + 1)
    assert (again.since, again.changes) == (0, first.changes)


def test_moments_alone_cost_no_content(served: ServedInventory) -> None:
    assert Moments(*ask_moments(served.config.inventory.directory, 30.0)).as_of <= now()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    publication.save_state(tmp_path, Publication(7, Moments(now(), store_asked_at=now()), STATE))
    return tmp_path


def test_what_was_saved_is_restored(folder: Path) -> None:
    found = publication.restore_state(folder, now() - 60.0)
    assert found is not None
    assert (found.version, found.snapshot) == (7, STATE)
    assert 0.0 <= found.age_seconds < 60.0


def test_what_is_too_old_damaged_of_another_run_or_not_there_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert publication.restore_state(folder, now() + 1.0) is None
    assert publication.restore_state(folder / "absent", 0.0) is None
    with monkeypatch.context() as patch:
        patch.setattr(publication, "boot_id", lambda: b"another")
        assert publication.restore_state(folder, 0.0) is None
    file = folder / publication.STATE_FILE
    whole = file.read_bytes()
    for damaged in (whole[:-1], b"", whole.replace(b"v7", b"v8")):
        file.write_bytes(damaged)
        assert publication.restore_state(folder, 0.0) is None
