"""Who asks for an engine's state closes what that took; a service that hears nothing for a while hangs."""

import math
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ovirt_placement.cli.main import main
from ovirt_placement.config import Config
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.connection import Hangs, NoAnswer, NoService, Services
from ovirt_placement.inventory.decision import NoSnapshot
from ovirt_placement.inventory.publication import Wake, ask
from ovirt_placement.store.enforcer.intents import Store
from ovirt_service import process
from tests.clock import Clock
from tests.placement.engine_server import PASSWORD, EngineServer
from tests.placement.inventory.running import configured, ended, loaded, readings, running

#: As Python 3.12.0 and 3.12.1 refuse each thread from the moment at which the interpreter begins to end.
REFUSAL = "can't create new thread at interpreter shutdown"
#: The same, in a process that ends.
REFUSING = f"""
import threading
def refuse(*arguments, **named): raise RuntimeError({REFUSAL!r})
def begin_no_more(): threading._start_new_thread = refuse
threading._register_atexit(begin_no_more)
"""
ASKING = "from ovirt_placement.inventory import client as inventory; assert inventory.snapshot().vms"


@pytest.fixture
def log_outs(engine: EngineServer) -> list[str]:
    found: list[str] = []
    engine.log_out = lambda: found.append("")
    return found


@pytest.fixture(autouse=True)
def _store(config: Config) -> None:
    """There is one, so that it is opened."""
    store = Store(config.store.url, engine="default", patience_seconds=30)
    store.blocking_intents()
    store.close()


def test_a_command_has_logged_out_when_it_ends(
    config: Config, engine: EngineServer, log_outs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["violations", "--config", str(config.source)]) in {0, 1}
    assert engine.logins == len(log_outs) == 1
    assert capsys.readouterr().err == ""


def test_what_is_closed_is_opened_again_when_it_is_asked_for(
    config: Config, engine: EngineServer, log_outs: list[str]
) -> None:
    before = inventory.snapshot(config=config, max_age=30)
    inventory.close()
    assert len(log_outs) == 1
    assert inventory.snapshot(config=config, max_age=30) == before
    assert readings(engine) == engine.logins == 2


def test_a_reading_that_is_under_way_is_broken_off(engine: EngineServer, config: Config) -> None:
    release, came = threading.Event(), threading.Event()
    engine.answer = lambda path: (came.set(), release.wait(30), None)[2]
    failures: list[str] = []

    def ask() -> None:
        try:
            inventory.snapshot(config=config, deadline=30)
        except NoSnapshot as error:
            failures.append(str(error))

    asker = threading.Thread(target=ask)
    asker.start()
    assert came.wait(30)
    closing = threading.Thread(target=inventory.close)
    closing.start()
    asker.join(30)
    release.set()
    closing.join(30)
    assert len(failures) == 1


def test_at_the_end_of_the_interpreter_no_thread_is_needed(
    config: Config, log_outs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inventory.snapshot(config=config)

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError(REFUSAL)

    # The engine's own threads begin as ever.
    monkeypatch.setattr("ovirt_service.process.BackgroundThread.start", refuse)
    process.close_all()
    assert len(log_outs) == 1


@pytest.mark.system
@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGHUP, -signal.SIGHUP)],
)
def test_a_command_that_a_signal_ends_has_logged_out(
    config: Config, engine: EngineServer, log_outs: list[str], number: signal.Signals, status: int
) -> None:
    """While it waits for the engine's answer."""
    came, release = threading.Event(), threading.Event()
    engine.answer = lambda path: (came.set(), release.wait(60), None)[2]
    environment = {"OVIRT_PASSWORD": PASSWORD, "OVIRT_PLACEMENT_CONFIG": str(config.source)}
    words = (Path(sys.executable).with_name("ovirt-placement"), "violations")
    # As in a terminal: where a parent ignores SIGHUP, as nohup does, so does what it starts.
    earlier = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True) as process:
        signal.signal(signal.SIGHUP, earlier)
        try:
            assert came.wait(60)
            process.send_signal(number)
            _, complaint = process.communicate(timeout=60)
        finally:
            release.set()
            process.kill()
    assert (process.returncode, complaint) == (status, "")
    assert engine.logins == len(log_outs) == 1


@pytest.mark.system
def test_a_process_logs_out_before_it_ends(config: Config, engine: EngineServer, log_outs: list[str]) -> None:
    environment = {"OVIRT_PASSWORD": PASSWORD, "OVIRT_PLACEMENT_CONFIG": str(config.source)}
    done = subprocess.run(
        [sys.executable, "-c", REFUSING + ASKING], env=environment, capture_output=True, check=False
    )
    assert (done.stderr, done.returncode) == (b"", 0)
    assert engine.logins == len(log_outs) == 1


#: A service that is awake hears within a quarter of it, and one that is stopped does not.
SHORT_SECONDS = 2.0


@pytest.mark.system
@pytest.mark.timing
def test_who_hears_in_between_does_not_hang(engine: EngineServer, tmp_path: Path) -> None:
    file = configured(tmp_path, engine)
    config, clock = loaded(file), Clock()
    services = Services(clock)
    with running(file) as service:
        published = inventory.known(config=config, max_age=math.inf).publication
        assert published is not None

        def wait(awake: bool) -> None:
            service.send_signal(signal.SIGCONT if awake else signal.SIGSTOP)
            ask(config.inventory.directory, Wake(published.version), SHORT_SECONDS, int, services)

        for awake in (False, True, False):  # nothing is published meanwhile
            with pytest.raises(NoAnswer):
                wait(awake)
            clock.now += 60.0
        with pytest.raises(Hangs):
            wait(awake=False)
        with pytest.raises(NoService):  # it is not asked
            wait(awake=True)
        clock.now += 60.0
        with pytest.raises(NoAnswer):
            wait(awake=True)
        ended(service)
