"""What an administrator sees of the service: its state in systemd, and its metrics."""

import math
import sys
import threading
from pathlib import Path

import pytest

from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.decision import NoSnapshot
from ovirt_placement.inventory.service.attempts import kind_of
from tests.pages import faults, page_named_in, samples
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import configured, ended, loaded, running
from tests.proxy.running import eventually
from tests.service.listening import systemd

PREFIX = "ovirt_placement_inventory"


def impatient(**constants: float) -> list[str]:
    """The command with other constants than those that stand for many seconds."""
    changes = "".join(f"service.{name} = {value}\n" for name, value in constants.items())
    program = (
        "import sys\nfrom ovirt_placement.inventory.service import service\n"
        f"{changes}from ovirt_placement.cli.main import main\nsys.exit(main())\n"
    )
    return [sys.executable, "-c", program]


def away(path: str) -> tuple[int, bytes]:
    return 503, b"<html>"


class Hanging:
    """An engine that lets its askers wait until it is released."""

    def __init__(self, engine: EngineServer) -> None:
        self.entered, self._release = threading.Event(), threading.Event()
        self._engine = engine
        engine.answer = self._answer

    def release(self) -> None:
        self._engine.answer = lambda path: None
        self._release.set()

    def _answer(self, path: str) -> None:
        self.entered.set()
        self._release.wait(60)


def test_systemd_hears_when_it_has_published_and_that_it_lives(engine: EngineServer, tmp_path: Path) -> None:
    file = configured(tmp_path, engine)
    with systemd(tmp_path) as listening:
        environment = listening.environment(watchdog_seconds=0.3)
        with running(file, ready=False, environment=environment) as service:
            listening.hear_until("READY=1")
            assert inventory.known(config=loaded(file), max_age=math.inf).publication is not None
            assert "READY=1" not in listening.hear_until("WATCHDOG=1", 3)
            ended(service)
            listening.hear_until("STOPPING=1")


@pytest.mark.system
def test_an_engine_that_is_away_keeps_it_neither_from_being_ready_nor_alive(
    engine: EngineServer, tmp_path: Path
) -> None:
    engine.answer = away
    file = configured(tmp_path, engine)
    with systemd(tmp_path) as listening:
        environment = listening.environment(watchdog_seconds=0.3)
        with running(file, ready=False, environment=environment) as service:
            listening.hear_until("READY=1")
            with pytest.raises(NoSnapshot):
                inventory.known(config=loaded(file), max_age=math.inf, deadline=5)
            listening.hear_until("WATCHDOG=1", 3)
            engine.answer = lambda path: None
            assert service.stdout is not None
            assert service.stdout.readline().startswith("ovirt-placement: publishing to ")
            ended(service)
            assert "READY=1" not in listening.hear_until("STOPPING=1")


@pytest.mark.system
def test_an_engine_that_hangs_is_not_waited_for_with_being_ready(
    engine: EngineServer, tmp_path: Path
) -> None:
    hanging = Hanging(engine)
    with systemd(tmp_path) as listening:
        command, environment = impatient(_READY_SECONDS=0.1), listening.environment()
        with running(configured(tmp_path, engine), False, command, environment) as service:
            assert hanging.entered.wait(30)
            assert listening.hear() == "READY=1"
            ended(service)
            hanging.release()


def test_a_wrong_set_up_is_never_ready(engine: EngineServer, tmp_path: Path) -> None:
    file = configured(tmp_path, engine)
    (tmp_path / "password").write_text("guess")
    with systemd(tmp_path) as listening:
        with running(file, ready=False, environment=listening.environment()) as service:
            assert service.wait(30) == 2
        assert listening.count(0.01) == 0


@pytest.mark.system
def test_a_turn_that_never_ends_is_no_sign_of_life(engine: EngineServer, tmp_path: Path) -> None:
    file = configured(tmp_path, engine, interval_seconds=0.5)
    command = impatient(LONGEST_PAUSE_SECONDS=0, _MOST_SLOW_REQUESTS=0)
    with systemd(tmp_path) as listening:
        environment = listening.environment(watchdog_seconds=0.15)
        with running(file, command=command, environment=environment) as service:
            listening.hear_until("WATCHDOG=1", 3)
            hanging = Hanging(engine)
            assert hanging.entered.wait(30)
            while listening.count(0.5):
                pass
            hanging.release()
            listening.hear_until("WATCHDOG=1", 3)
            ended(service)


def test_metrics(engine: EngineServer, tmp_path: Path) -> None:
    file = configured(tmp_path, engine, metrics='"127.0.0.1:0"')
    with running(file) as service:
        page = page_named_in(service.log)
        before = samples(page)
        inventory.snapshot(config=loaded(file), max_age=0, deadline=30)
        engine.answer = away
        with pytest.raises(NoSnapshot):
            inventory.snapshot(config=loaded(file), max_age=0, deadline=30)
        failed = f"{PREFIX}_engine_requests_total", "events", "failed"
        eventually(lambda: samples(page).get(failed, 0) >= 1)
        after = samples(page)
        assert faults(page) == ""
        ended(service)
    assert before[f"{PREFIX}_versions_total",] == after[f"{PREFIX}_versions_total",] == 1
    assert 0 <= before[f"{PREFIX}_snapshot_age_seconds",] < 60
    readings = f"{PREFIX}_reading_duration_seconds_count"
    assert before[readings, "whole"] == 1
    assert after[readings, "whole"] >= 2
    assert after[readings, "turn"] > before[readings, "turn"]
    requests = f"{PREFIX}_engine_requests_total", "hosts", "ok"
    assert (before[requests], after[requests]) == (1, 2)
    assert after[f"{PREFIX}_questions_total", "refresh"] == 2
    assert after["process_resident_memory_bytes",] > 0


def test_an_address_that_is_none_is_reported_and_nothing_is_published(
    engine: EngineServer, tmp_path: Path
) -> None:
    file = configured(tmp_path, engine, metrics='"9090"')
    with running(file, ready=False) as service:
        assert service.wait(30) == 2
        assert "[inventory] metrics '9090' is not HOST:PORT" in service.log
    assert {path.name for path in loaded(file).inventory.directory.iterdir()} == {"lock"}


def test_requests_are_counted_by_what_they_ask_for_and_not_by_ids() -> None:
    assert kind_of("/vms") == kind_of("/vms/v1") == "vms"
    assert kind_of("/clusters/c1/affinitygroups") == kind_of("/clusters/c2/affinitygroups")
