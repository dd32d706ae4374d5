"""The inventory service: one reading for all who wait, nothing left behind, and what is lost made good."""

import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ovirt_placement.config import Config
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.connection import NoService
from ovirt_placement.inventory.publication import Decide, Decided, ask
from tests.builders import key
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import COMMAND, configured, ended, loaded, readings, running
from tests.placement.inventory.test_stored_keys import opened, soon
from tests.stored import put_keys

#: These assertions depend on real time.
pytestmark = [pytest.mark.system, pytest.mark.timing]


def test_the_end_removes_what_was_published(file: Path, config: Config) -> None:
    directory = config.inventory.directory
    for number in (signal.SIGTERM, signal.SIGINT):
        with running(file) as service:
            assert {path.name for path in directory.iterdir()} - {"state"} == {"lock", "names", "socket"}
            service.send_signal(number)
            assert service.wait(30) == 0
        assert {path.name for path in directory.iterdir()} == {"lock", "state"}


def test_all_who_wait_share_one_reading(engine: EngineServer, file: Path, config: Config) -> None:
    with running(file) as service:
        entered, release = threading.Event(), threading.Event()

        def slow(path: str) -> None:
            if path.startswith("/clusters"):
                entered.set()
                release.wait(30)

        engine.answer = slow
        with ThreadPoolExecutor(8) as askers:
            found = [
                askers.submit(inventory.snapshot, config=config, max_age=0, deadline=30) for _ in range(8)
            ]
            assert entered.wait(30)
            release.set()
        assert all(one.result().vms for one in found)
        # The one at the start, and one or at most two for all: an asker may come when the first has begun.
        assert 2 <= readings(engine) <= 3
        ended(service)


def test_a_directory_may_be_deeper_than_a_sockets_path_can_be(engine: EngineServer, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    file = configured(deep, engine)
    with running(file) as service:
        before = inventory.snapshot(config=loaded(file), max_age=60)
        assert inventory.snapshot(config=loaded(file), max_age=0, deadline=30) is before
        assert readings(engine) == 2
        assert engine.logins <= 2  # the service's: nobody had to read the engine for himself
        ended(service)


def test_one_directory_has_one_publisher(file: Path) -> None:
    words = [COMMAND, "inventory", "run", "--config", str(file)]
    with running(file) as service:
        second = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert second.returncode == 2
        assert second.stderr.endswith("another inventory publishes there\n")
        ended(service)


def test_after_a_sudden_death_readers_read_the_engine_and_a_new_service_takes_over(
    engine: EngineServer, file: Path, config: Config
) -> None:
    with running(file) as service:
        published = inventory.snapshot(config=config, max_age=60)
        service.kill()
        service.wait(30)
    direct = inventory.snapshot(config=config, max_age=0)
    assert direct == published
    assert readings(engine) == 2
    with running(file) as service:
        assert inventory.snapshot(config=config, max_age=60) == published
        ended(service)


def test_who_asks_a_service_that_hangs_reads_the_engine_well_before_the_deadline(
    engine: EngineServer, file: Path, config: Config
) -> None:
    with running(file) as service:
        published = inventory.snapshot(config=config, max_age=60)
        service.send_signal(signal.SIGSTOP)
        times = []
        for _ in range(3):
            began = time.monotonic()
            assert inventory.snapshot(config=config, max_age=0, deadline=8) == published
            times.append(time.monotonic() - began)
        assert times[0] < 4
        assert sum(times[1:]) < times[0] + 2  # it is not asked each time
        with pytest.raises(NoService):
            inventory.wait_for_change(5, config=config)
        service.send_signal(signal.SIGCONT)
        ended(service)


def test_after_a_restart_it_answers_at_once_by_what_it_saved_until_it_has_read(
    engine: EngineServer, tmp_path: Path
) -> None:
    file = configured(tmp_path, engine, max_age_seconds=0.01)  # what was saved is older as soon as it starts
    config = loaded(file)
    with opened(config.store.url) as store:
        put_keys(store, [key("A")])
    with running(file) as service:
        saved = soon(config, lambda found: bool(found.placement_keys))
        inventory.close()  # it knows nothing of it itself
        ended(service)
    for left in tmp_path.glob("store.db*"):  # the store is lost as well
        left.unlink()
    hears = threading.Event()
    engine.answer = lambda path: hears.wait(60) and None
    with running(file) as service:  # it says at once that it publishes
        found = inventory.known(config=config, max_age=60, deadline=1.0)
        assert found.publication is not None
        assert found.snapshot == saved
        assert found.publication.age_seconds > 0.0
        host = saved.hosts[0].id
        question = Decide("filter", "AffinityFilter", [host], saved.vms[0].id)
        decided = ask(config.inventory.directory, question, 30.0, Decided)
        assert (decided.failure, decided.hosts) == (None, [host])
        assert decided.age_seconds > 0.3  # the engine was waited for
        hears.set()
        assert inventory.known(config=config, max_age=0, deadline=30).publication is not None
        log = ended(service)
    assert "answers by the state that was saved" in log
