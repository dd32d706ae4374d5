"""An engine that is away, hangs, or answers what cannot be; and a service that gets too little memory."""

import contextlib
import selectors
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

import pytest

from ovirt_placement.config import Config
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.decision import NoSnapshot
from ovirt_placement.model import Snapshot
from ovirt_service.errors import EXIT_STATUS, UserError
from tests.placement.engine_server import EngineServer
from tests.placement.inventory.running import COMMAND, ended, running

#: The command, in which a number that is none is no answer of something else.
WITH_A_BUG = """
import sys
from ovirt_placement.cli.main import main
from ovirt_placement.engine import xml
xml.whole = lambda written, what: int(written)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.system
@pytest.mark.timing
def test_an_engine_that_goes_away_is_reported_once_and_awaited(
    engine: EngineServer, file: Path, config: Config
) -> None:
    with running(file) as service:
        engine.answer = lambda path: (503, b"<html>")
        for _ in range(3):
            with pytest.raises(NoSnapshot, match=r"starting or stopping.*the last one is \d+ s old"):
                inventory.snapshot(config=config, max_age=0, deadline=30)
        engine.answer = lambda path: None
        assert recovered(config).vms
        log = ended(service)
    assert log.count("asking again until it answers") == 1
    assert log.count("the engine answers again") == 1
    assert "Traceback" not in log


def recovered(config: Config) -> Snapshot:
    until = time.monotonic() + 30
    while True:
        try:
            return inventory.snapshot(config=config, max_age=0, deadline=30)
        except NoSnapshot:
            assert time.monotonic() < until


@pytest.mark.system
@pytest.mark.timing
def test_a_bug_in_reading_reaches_the_log_and_not_the_end(
    engine: EngineServer, file: Path, config: Config
) -> None:
    violated = b'<hosts><host id="h"><memory>much</memory></host></hosts>'
    with running(file, command=(sys.executable, "-c", WITH_A_BUG)) as service:
        engine.answer = lambda path: (200, violated) if path == "/hosts" else None
        with pytest.raises(NoSnapshot, match="reading the engine failed"):
            inventory.snapshot(config=config, max_age=0, deadline=30)
        engine.answer = lambda path: None
        assert recovered(config).vms
        assert "Traceback" in ended(service)


@pytest.mark.system
@pytest.mark.timing
def test_an_engine_that_suddenly_lists_nothing_is_asked_again_before_it_is_believed(
    engine: EngineServer, file: Path, config: Config
) -> None:
    with running(file) as service:
        before = inventory.snapshot(config=config, max_age=60)
        empty = [b"<vms/>"]
        engine.answer = lambda path: (200, empty.pop()) if path == "/vms" and empty else None
        with pytest.raises(NoSnapshot, match=r"lists but 0 of \d+ VMs that it had"):
            inventory.snapshot(config=config, max_age=0, deadline=30)
        assert recovered(config) == before
        engine.answer = lambda path: (200, b"<vms/>") if path == "/vms" else None
        assert recovered(config).vms == ()  # it is true, then
        log = ended(service)
    assert "it is asked again before that is believed" in log


@pytest.mark.system
@pytest.mark.timing
def test_a_page_of_a_web_server_switches_no_rule_off(
    engine: EngineServer, file: Path, config: Config
) -> None:
    labels = b'<affinity_labels><affinity_label id="l"><name>l</name></affinity_label></affinity_labels>'
    answers = {"/affinitylabels": (200, labels)}
    engine.answer = lambda path: answers.get(path.partition("?")[0])
    with running(file) as service:
        before = inventory.snapshot(config=config, max_age=60)
        assert [label.name for label in before.affinity_labels] == ["l"]
        answers["/affinitylabels"] = (404, b"<html>Not Found</html>")
        with pytest.raises(NoSnapshot, match="a web server answers 404 in place of the engine"):
            inventory.snapshot(config=config, max_age=0, deadline=30)
        assert inventory.snapshot(config=config, max_age=60) == before
        assert "a web server answers 404" in ended(service)


@pytest.mark.system
@pytest.mark.timing
def test_it_ends_within_two_seconds_though_the_engine_hangs(
    engine: EngineServer, file: Path, config: Config
) -> None:
    over = threading.Event()
    with running(file) as service:
        inventory.snapshot(config=config, max_age=0, deadline=30)
        entered = threading.Event()

        def hang(path: str) -> None:
            entered.set()
            over.wait(60)

        engine.answer, engine.log_out = hang, lambda: over.wait(60)
        asking = threading.Thread(target=_ask_in_vain, args=(config,))
        asking.start()
        assert entered.wait(30)
        began = time.monotonic()
        log = ended(service)
        assert time.monotonic() - began < 3  # two, and the end of Python
        asking.join(30)
        over.set()
    assert "Traceback" not in log


def _ask_in_vain(config: Config) -> None:
    with contextlib.suppress(UserError):
        inventory.snapshot(config=config, max_age=0, deadline=0.5)


#: MiB of addresses, from where Python hardly starts to where a small engine can be followed.
LIMITS = range(100, 260, 20)
LONG_SECONDS = 60
#: A library that does without the memory that it did not get is ended by the system.
CRASHES = (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS)


def heard(pipe: IO[str]) -> bool:
    """Whether something comes, or the end, in time."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        return bool(selector.select(LONG_SECONDS))


@pytest.mark.system
@pytest.mark.parametrize("limit", LIMITS)
def test_it_ends_by_itself_or_by_a_signal(file: Path, tmp_path: Path, limit: int) -> None:
    command = f"ulimit -v {limit << 10}; exec {COMMAND} inventory run --config {file}"
    log = tmp_path / "log"
    with (
        log.open("w") as logged,
        subprocess.Popen(
            ["bash", "-c", command], stdout=subprocess.PIPE, stderr=logged, text=True
        ) as service,
    ):
        try:
            assert service.stdout is not None
            assert heard(service.stdout), f"it hangs: {log.read_text()}"
            began = service.stdout.readline()  # that it publishes, or nothing when it has ended
            if began:
                service.send_signal(signal.SIGTERM)
            # What has begun may still run out before the signal comes.
            ended = (0, EXIT_STATUS) if began else range(1, EXIT_STATUS + 2)
            assert service.wait(LONG_SECONDS) in (*ended, *CRASHES)
        finally:
            service.kill()
    assert "malformed XML" not in log.read_text()
