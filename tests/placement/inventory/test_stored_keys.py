"""Placement keys are published of the store as it is now, or, where that is away, as they were last read."""

import math
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ovirt_placement.config import Config
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.decision import NoSnapshot
from ovirt_placement.inventory.publication import Publication, age
from ovirt_placement.model import FrozenKeys, Snapshot, StickyCopy
from ovirt_placement.store.keys import KeyStore, Run
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from tests.builders import key, rule
from tests.placement.databases import database
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import configured, ended, loaded, polls, running
from tests.stored import put_keys

DEADLINE_SECONDS = 30


def configured_over(tmp_path: Path, engine: EngineServer, url: str) -> Path:
    """Configure a service that asks the engine but rarely, over a store of either kind."""
    file = configured(tmp_path, engine)
    file.write_text(file.read_text().replace(f"sqlite:///{tmp_path}/store.db", url))
    return file


@contextmanager
def opened(url: str) -> Iterator[KeyStore]:
    store = KeyStore(url, engine="default", patience_seconds=30)
    try:
        yield store
    finally:
        store.close()


def names(snapshot: Snapshot) -> list[str]:
    return [key.name for key in snapshot.placement_keys]


def published(config: Config) -> Snapshot:
    """What is published now, from either source."""
    return publication(config).snapshot


def publication(config: Config) -> Publication:
    """The same with its moments."""
    found = inventory.known(config=config, max_age=math.inf).publication
    assert found is not None
    return found


def soon(config: Config, holds: Callable[[Snapshot], bool]) -> Snapshot:
    """Wait until what is published is so, without asking for it."""
    until = time.monotonic() + DEADLINE_SECONDS
    while not holds(found := published(config)):
        assert time.monotonic() < until, found
        inventory.wait_for_change(1.0, config=config)
        time.sleep(0.01)
    return found


def reported(log: Path, text: str) -> int:
    """How often the service has said so, once it has said it at all."""
    until = time.monotonic() + DEADLINE_SECONDS
    while not (count := log.read_text().count(text)):
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.01)
    return count


@pytest.fixture
def patient(tmp_path: Path, engine: EngineServer, url: str) -> Path:
    """The store takes as long to answer as a busy machine does."""
    found = configured_over(tmp_path, engine, url)
    found.write_text(found.read_text().replace("[store]", "[store]\npatience_seconds = 30.0"))
    return found


@pytest.fixture
def patient_config(patient: Path) -> Config:
    return loaded(patient)


@pytest.mark.system
def test_all_keys_of_the_store_are_published_at_the_start_and_as_they_change(
    patient: Path, patient_config: Config, url: str, engine: EngineServer
) -> None:
    copy = StickyCopy(vm="v", name="SAN", value=1.0, weight=60.0)
    with opened(url) as store:
        put_keys(store, [key("A")])
        store.begin_runs([Run("v", None, (("B", 0.1),), (copy,))])
        with running(patient) as service:
            first = published(patient_config)
            assert (first.placement_keys, first.sticky_copies) == ((key("A"),), (copy,))
            assert first.frozen_keys == (FrozenKeys("v", (("B", 0.1),)),)
            asked = polls(engine)
            put_keys(store, [key("C")])
            store.end_runs(["v"])
            after = soon(patient_config, lambda found: names(found) == ["A", "C"] and not found.frozen_keys)
            assert after.sticky_copies == (copy,)
            assert polls(engine) <= asked + 1  # they do not wait for the engine, which may be asked for more
            ended(service)


@pytest.mark.system
def test_what_was_set_before_a_decision_is_seen_by_it(
    patient: Path, patient_config: Config, url: str
) -> None:
    with opened(url) as store, running(patient) as service:
        for number in range(10):
            put_keys(store, [key(f"K{number}")])
            max_age = 0.0 if number % 3 == 0 else 0.001
            if max_age:
                time.sleep(max_age)
            assert f"K{number}" in names(
                inventory.snapshot(config=patient_config, max_age=max_age, deadline=30)
            )
        ended(service)


@pytest.mark.system
def test_before_there_is_a_store_there_are_no_keys_and_nothing_is_wrong(
    patient: Path, patient_config: Config, url: str
) -> None:
    with running(patient) as service:
        assert names(inventory.snapshot(config=patient_config, max_age=0, deadline=30)) == []
        with opened(url) as store:
            put_keys(store, [key("A")])
        assert names(inventory.snapshot(config=patient_config, max_age=0, deadline=30)) == ["A"]
        log = ended(service)
    assert log.count("there is no store yet") == 1
    assert "WARNING" not in log


@pytest.mark.system
def test_keys_are_published_while_the_engine_is_away(
    patient: Path, patient_config: Config, url: str, engine: EngineServer
) -> None:
    with opened(url) as store, running(patient) as service:
        engine.answer = lambda path: (503, b"<html>")
        with pytest.raises(NoSnapshot):
            inventory.snapshot(config=patient_config, max_age=0, deadline=30)
        put_keys(store, [key("A")])
        soon(patient_config, lambda found: names(found) == ["A"])
        ended(service)


@pytest.mark.system
def test_placement_rules_are_published_at_once_and_by_whom_nobody_publishes(
    patient: Path, patient_config: Config, url: str
) -> None:
    first, second = rule("a", "at_most_per_host", most=1), rule("b", "at_most_per_host", "tag:web", most=2)
    store = RuleStore(url, engine=patient_config.engine.name, patience_seconds=30)
    store.change(lambda standing: RuleChange(put=(first,)), changed_by="ann")
    with running(patient) as service:
        assert inventory.snapshot(config=patient_config, max_age=60, deadline=30).placement_rules == (first,)
        store.change(lambda standing: RuleChange(put=(second,)), changed_by="ann")
        soon(patient_config, lambda found: found.placement_rules == (first, second))
        ended(service)
    alone = inventory.snapshot(config=patient_config, max_age=0, deadline=30)
    assert alone.placement_rules == (first, second)
    store.close()


@pytest.fixture
def file(tmp_path: Path, engine: EngineServer, url: str) -> Path:
    return configured_over(tmp_path, engine, url)


@pytest.fixture
def config(file: Path) -> Config:
    return loaded(file)


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


@pytest.mark.system
def test_a_locked_store_holds_up_and_fails_nothing_and_its_keys_stay(
    file: Path, config: Config, url: str
) -> None:
    log = file.with_name("inventory.log")
    with opened(url) as store:
        put_keys(store, [key("A")])
    lockable(url)
    with running(file) as service:
        with locked(url):
            began = time.monotonic()
            for _ in range(5):
                assert names(inventory.snapshot(config=config, max_age=0, deadline=30)) == ["A"]
            assert time.monotonic() - began < 20  # readings of the engine, on a machine that may be busy
            assert reported(log, "placement keys cannot be read: ") == 1
            moments = publication(config).moments
            assert moments.keys_at < moments.store_asked_at
        assert reported(log, "placement keys are read again") == 1
        with opened(url) as store:
            put_keys(store, [key("B")])
        assert names(inventory.snapshot(config=config, max_age=0, deadline=30)) == ["A", "B"]
        said = ended(service)
    assert said.count("those read last count") == 1
    assert said.count("placement keys are read again") == 1


def test_a_store_that_is_away_at_the_start_is_not_awaited_for_ever(
    file: Path, config: Config, url: str
) -> None:
    with opened(url) as store:
        put_keys(store, [key("A")])
    lockable(url)
    with locked(url), running(file) as service:
        assert names(published(config)) == []
        assert age(publication(config).moments.keys_at) is None
        said = ended(service)
    assert said.count("decisions are made without them") == 1


class TestFile:
    """What can become of a file and not of a server."""

    @pytest.fixture
    def url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/store.db"

    def test_a_store_with_an_earlier_revision_may_take_its_place(
        self, file: Path, config: Config, url: str, tmp_path: Path
    ) -> None:
        with opened(url) as store:
            put_keys(store, [key("OLD")])
        (tmp_path / "copy.db").write_bytes((tmp_path / "store.db").read_bytes())
        with opened(url) as store:
            put_keys(store, [key("NEW")])
        with running(file) as service:
            assert names(published(config)) == ["NEW", "OLD"]
            for left in tmp_path.glob("store.db-*"):
                left.unlink()
            (tmp_path / "copy.db").replace(tmp_path / "store.db")
            soon(config, lambda found: names(found) == ["OLD"])
            ended(service)

    def test_a_violated_store_is_reported_once(self, file: Path, config: Config, tmp_path: Path) -> None:
        (tmp_path / "store.db").write_text("no database" * 100)
        with running(file) as service:
            for _ in range(3):
                assert names(inventory.snapshot(config=config, max_age=0, deadline=30)) == []
            log = ended(service)
        assert log.count("placement keys cannot be read: ") == log.count("open migrations are unknown: ") == 1
        assert log.count("is damaged (file is not a database)") == 2
        assert "Traceback" not in log


@pytest.mark.system
def test_a_server_that_hangs_costs_a_refresh_its_patience_at_most(
    tmp_path: Path, engine: EngineServer, server: str
) -> None:
    """PostgreSQL accepts connections and says nothing: no error ever comes."""
    file = configured_over(tmp_path, engine, server)
    config, log = loaded(file), file.with_name("inventory.log")
    with opened(server) as store:
        put_keys(store, [key("A")])
    with running(file) as service:
        assert names(inventory.snapshot(config=config, max_age=0, deadline=30)) == ["A"]
        with stopped(server):
            assert reported(log, "the store does not answer; those read last count") == 1
            began = time.monotonic()
            for _ in range(3):
                assert names(inventory.snapshot(config=config, max_age=0, deadline=30)) == ["A"]
            assert time.monotonic() - began < 20
        assert reported(log, "placement keys are read again") == 1
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
