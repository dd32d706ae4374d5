"""Placement keys are published with the snapshot, of the store as it is now, else as it was last read.

Each test is told what a process of its own would decide on that has no store to ask.
"""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.inventory import NoSnapshot
from ovirt_placement.inventory.published import publication
from ovirt_placement.model import FrozenKeys, PlacementKey, Snapshot, StickyCopy
from ovirt_placement.store.keys import KeyStore, Run
from tests.placement.databases import database
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import configured, ended, loaded, polls, running

DEADLINE_SECONDS = 30


def key(name: str, resource: str = "somewhere", level: str = "vdc") -> PlacementKey:
    return PlacementKey(level=level, resource=resource, key_class="system", name=name, value=1.0, weight=5.0)


@pytest.fixture
def file(tmp_path: Path, engine: EngineServer, url: str) -> Path:
    """Configure a service that asks the engine but rarely, over a store of either kind."""
    file = configured(tmp_path, engine)
    file.write_text(file.read_text().replace(f"sqlite:///{tmp_path}/store.db", url))
    return file


@pytest.fixture
def config(file: Path) -> Config:
    return loaded(file)


@contextmanager
def opened(url: str) -> Iterator[KeyStore]:
    store = KeyStore(url, patience_seconds=30)
    try:
        yield store
    finally:
        store.close()


def names(snapshot: Snapshot) -> list[str]:
    return [key.name for key in snapshot.placement_keys]


def published(config: Config) -> Snapshot:
    """What is published now, whoever may be asked."""
    found = publication.read(config.inventory.directory)
    assert found is not None
    return found.snapshot


def soon(config: Config, holds: Callable[[Snapshot], bool]) -> Snapshot:
    """Wait until what is published is so, without asking for it."""
    until = time.monotonic() + DEADLINE_SECONDS
    while not holds(found := published(config)):
        assert time.monotonic() < until, found
        inventory.wait_for_change(1.0, config=config)
        time.sleep(0.01)
    return found


def told(log: Path, text: str) -> int:
    """How often the service has said so, once it has said it at all."""
    until = time.monotonic() + DEADLINE_SECONDS
    while not (count := log.read_text().count(text)):
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.01)
    return count


def test_all_keys_of_the_store_are_published_at_the_start_and_as_they_change(
    file: Path, config: Config, url: str, engine: EngineServer
) -> None:
    copy = StickyCopy(vm="v", name="SAN", value=1.0, weight=60.0)
    with opened(url) as store:
        store.change([key("A")], set_by="ann")
        store.begin_runs([Run("v", None, (("B", 0.1),), (copy,))])
        with running(file) as service:
            first = published(config)
            assert (first.placement_keys, first.sticky_copies) == ((key("A"),), (copy,))
            assert first.frozen_keys == (FrozenKeys("v", (("B", 0.1),)),)
            asked = polls(engine)
            store.change([key("C")], set_by="ann")
            store.end_runs(["v"])
            after = soon(config, lambda found: names(found) == ["A", "C"] and not found.frozen_keys)
            assert after.sticky_copies == (copy,)
            assert polls(engine) == asked  # they do not wait for the engine
            ended(service)


def test_what_was_set_before_a_decision_is_seen_by_it(file: Path, config: Config, url: str) -> None:
    with opened(url) as store, running(file) as service:
        for number in range(10):
            store.change([key(f"K{number}")], set_by="ann")
            max_age = 0.0 if number % 3 == 0 else 0.001
            if max_age:
                time.sleep(max_age)
            assert f"K{number}" in names(inventory.snapshot(config=config, max_age=max_age, deadline=30))
        ended(service)


def test_lists_of_keys_stay_the_same_objects_while_the_keys_do(
    file: Path, config: Config, url: str, engine: EngineServer
) -> None:
    with opened(url) as store:
        store.change([key("A")], set_by="ann")
        store.begin_runs([Run("v", None, (("B", 0.1),))])
        with running(file) as service:
            first = inventory.snapshot(config=config, max_age=60)
            hosts = (engine.recording / "hosts.xml").read_bytes()
            renamed = hosts.replace(b"<name>bodh1<", b"<name>other<")
            engine.answer = lambda path: (200, renamed) if path == "/hosts" else None
            second = inventory.snapshot(config=config, max_age=0, deadline=30)
            assert second.hosts != first.hosts
            assert second.placement_keys is first.placement_keys
            assert second.frozen_keys is first.frozen_keys
            assert {id(vm) for vm in second.vms} == {id(vm) for vm in first.vms}
            store.begin_runs([Run("w", None, ())])
            third = inventory.snapshot(config=config, max_age=0, deadline=30)
            assert third.placement_keys is first.placement_keys
            assert [frozen.vm for frozen in third.frozen_keys] == ["v", "w"]
            assert third.vms is second.vms
            ended(service)


def test_before_there_is_a_store_there_are_no_keys_and_nothing_is_wrong(
    file: Path, config: Config, url: str
) -> None:
    with running(file) as service:
        assert names(inventory.snapshot(config=config, max_age=0, deadline=30)) == []
        with opened(url) as store:
            store.change([key("A")], set_by="ann")
        assert names(inventory.snapshot(config=config, max_age=0, deadline=30)) == ["A"]
        log = ended(service)
    assert log.count("there is no store yet") == 1
    assert "WARNING" not in log


def lockable(url: str) -> None:
    """With its write-ahead log, SQLite locks no reader out."""
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
            connection.execute("PRAGMA journal_mode=DELETE")
        connection.close()


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Keep all others from the store, as long as this lasts."""
    with database(url) as connection:
        if url.startswith("sqlite"):
            connection.exec_driver_sql("BEGIN EXCLUSIVE")
        else:
            connection.exec_driver_sql("LOCK TABLE key_revision, placement_keys, frozen_keys")
        yield


def test_a_locked_store_holds_up_and_fails_nothing_and_its_keys_stay(
    file: Path, config: Config, url: str
) -> None:
    log = file.with_name("inventory.log")
    with opened(url) as store:
        store.change([key("A")], set_by="ann")
    lockable(url)
    with running(file) as service:
        with locked(url):
            began = time.monotonic()
            for _ in range(5):
                assert names(inventory.snapshot(config=config, max_age=0, deadline=30)) == ["A"]
            assert time.monotonic() - began < 20  # readings of the engine, on a machine that may be busy
            assert told(log, "placement keys cannot be read: ") == 1
            found = publication.read(config.inventory.directory)
            assert found is not None
            assert found.moments.keys_at < found.moments.store_asked_at
        assert told(log, "placement keys are read again") == 1
        with opened(url) as store:
            store.change([key("B")], set_by="ann")
        assert names(inventory.snapshot(config=config, max_age=0, deadline=30)) == ["A", "B"]
        said = ended(service)
    assert said.count("those read last stay published") == 1
    assert said.count("placement keys are read again") == 1


def test_a_store_that_is_away_at_the_start_is_not_awaited_for_ever(
    file: Path, config: Config, url: str
) -> None:
    with opened(url) as store:
        store.change([key("A")], set_by="ann")
    lockable(url)
    with locked(url), running(file) as service:
        assert names(published(config)) == []
        found = publication.read(config.inventory.directory)
        assert found is not None
        assert found.keys_age_seconds is None
        said = ended(service)
    assert said.count("decisions are made without them") == 1


def test_keys_are_published_while_the_engine_is_away(
    file: Path, config: Config, url: str, engine: EngineServer
) -> None:
    with opened(url) as store, running(file) as service:
        engine.answer = lambda path: (503, b"<html>")
        with pytest.raises(NoSnapshot):
            inventory.snapshot(config=config, max_age=0, deadline=30)
        store.change([key("A")], set_by="ann")
        soon(config, lambda found: names(found) == ["A"])
        ended(service)


class TestFile:
    """What can become of a file and not of a server."""

    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/store.db"

    def test_the_last_keys_outlive_a_store_that_is_taken_away(
        self, file: Path, config: Config, url: str, tmp_path: Path
    ) -> None:
        log = file.with_name("inventory.log")
        with opened(url) as store:
            store.change([key("A")], set_by="ann")
        with running(file) as service:
            (tmp_path / "store.db").rename(tmp_path / "elsewhere.db")
            assert told(log, "is not there any more; those read last stay published") == 1
            assert names(inventory.snapshot(config=config, max_age=0, deadline=30)) == ["A"]
            (tmp_path / "elsewhere.db").rename(tmp_path / "store.db")
            assert told(log, "placement keys are read again") == 1
            ended(service)

    def test_a_store_with_an_earlier_revision_may_take_its_place(
        self, file: Path, config: Config, url: str, tmp_path: Path
    ) -> None:
        with opened(url) as store:
            store.change([key("OLD")], set_by="ann")
        (tmp_path / "copy.db").write_bytes((tmp_path / "store.db").read_bytes())
        with opened(url) as store:
            store.change([key("NEW")], set_by="ann")
        with running(file) as service:
            assert names(published(config)) == ["NEW", "OLD"]
            for left in tmp_path.glob("store.db-*"):
                left.unlink()
            (tmp_path / "copy.db").replace(tmp_path / "store.db")
            soon(config, lambda found: names(found) == ["OLD"])
            ended(service)

    def test_a_broken_store_is_told_once(self, file: Path, config: Config, tmp_path: Path) -> None:
        (tmp_path / "store.db").write_text("no database" * 100)
        with running(file) as service:
            for _ in range(3):
                assert names(inventory.snapshot(config=config, max_age=0, deadline=30)) == []
            log = ended(service)
        assert log.count("file is not a database; decisions are made without them") == 1
        assert "Traceback" not in log


def test_a_server_that_hangs_costs_a_refresh_its_patience_at_most(
    tmp_path: Path, engine: EngineServer, server: str
) -> None:
    """PostgreSQL accepts connections and says nothing: no error ever comes."""
    file = configured(tmp_path, engine)
    file.write_text(file.read_text().replace(f"sqlite:///{tmp_path}/store.db", server))
    config, log = loaded(file), file.with_name("inventory.log")
    with opened(server) as store:
        store.change([key("A")], set_by="ann")
    with running(file) as service:
        assert names(inventory.snapshot(config=config, max_age=0, deadline=30)) == ["A"]
        with stopped(server):
            assert told(log, "the store does not answer; those read last stay published") == 1
            began = time.monotonic()
            for _ in range(3):
                assert names(inventory.snapshot(config=config, max_age=0, deadline=30)) == ["A"]
            assert time.monotonic() - began < 20
        assert told(log, "placement keys are read again") == 1
        ended(service)


@contextmanager
def stopped(server: str) -> Iterator[None]:
    """Let a PostgreSQL server and all that it has forked stand still."""
    folder = Path(server.partition("host=")[2])
    parent = int((folder / "data" / "postmaster.pid").read_text().split()[0])
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, check=True)
    processes = [parent, *map(int, listed.stdout.split())]
    for each in processes:
        subprocess.run(["kill", f"-{signal.SIGSTOP}", str(each)], check=True)
    try:
        yield
    finally:
        for each in processes:
            subprocess.run(["kill", f"-{signal.SIGCONT}", str(each)], check=True)
