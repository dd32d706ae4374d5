"""Commands of the administrator: bounded with all that they start, run once, and never waited for."""

import ast
import functools
import math
import os
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from ovirt_enforcer.maintenance import command_process
from ovirt_enforcer.maintenance.commands import CommandKind, Commands, CommandStatus
from ovirt_enforcer.service.leader import boot_clock
from ovirt_enforcer.settings import MaintenanceSettings
from ovirt_placement.store.enforcer.intents import Store
from ovirt_placement.store.enforcer.maintenance import HostPhase, MaintenanceRequest, Work
from ovirt_placement.store.sql.access import LeaseLost
from ovirt_service.errors import UserError
from tests.enforcer.maintenance.stage import host_of_run
from tests.proxy.running import eventually
from tests.stored import run_of

#: More than a busy machine needs to start a process.
_PATIENCE_SECONDS = 60.0
#: The loop polls at this interval at the least: nothing may hold it up for longer.
_NO_WAIT_SECONDS = 0.5
WORK, CHECK = CommandKind.WORK, CommandKind.BLOCKED_BY


class Stage:
    """A runner with a host of its own, whose processes are found by its id in their environment."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder / 'store.db'}"
        self.host = host_of_run(HostPhase.WORKING, host=uuid.uuid4().hex, draining=True)
        self.run = run_of(self.host, request=MaintenanceRequest(work=Work.COMMAND), age_seconds=1e6)
        self.runners: list[Commands] = []

    def runner(self, command: str, seconds: float = 3600.0) -> Commands:
        settings = MaintenanceSettings(command=command, blocked_by=command, command_seconds=seconds)
        self.runners.append(Commands(settings, Store(self.url, engine="e", patience_seconds=5.0)))
        return self.runners[-1]

    def status(self, commands: Commands, kind: CommandKind) -> CommandStatus:
        """How it stands, asked without waiting."""
        began = time.thread_time()
        found = commands.status(kind, self.run, self.host)
        assert time.thread_time() - began < _NO_WAIT_SECONDS
        assert found is not None
        return found

    def ended(
        self,
        commands: Commands,
        kind: CommandKind,
        reached: Callable[[CommandStatus], bool] = lambda found: not found.runs,
    ) -> CommandStatus:
        until = time.monotonic() + _PATIENCE_SECONDS
        while not reached(found := self.status(commands, kind)) and time.monotonic() < until:
            time.sleep(0.005)
        return found

    def printed(self, commands: Commands, kind: CommandKind, text: str) -> CommandStatus:
        return self.ended(commands, kind, lambda found: text in found.text)

    @property
    def processes(self) -> list[psutil.Process]:
        """Those of the commands, and of what they have started."""
        found = []
        for process in psutil.process_iter():
            try:
                ours = process.environ().get("MAINTENANCE_HOST_ID") == self.host.host
                if ours and not any(word.endswith("command_process.py") for word in process.cmdline()):
                    found.append(process)
            except psutil.Error:
                continue
        return [one for one in found if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]

    def leave_nothing(self) -> None:
        eventually(lambda: not self.processes, _PATIENCE_SECONDS)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    for runner in made.runners:
        runner.leave()
        runner.intents.close()


def python(code: str) -> str:
    return shlex.join([sys.executable, "-ISc", code])


pytestmark = pytest.mark.system


@pytest.mark.parametrize("kind", CommandKind)
def test_it_knows_the_host_and_no_secret(
    stage: Stage, kind: CommandKind, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    names = ("OVIRT_PASSWORD", "OVIRT_TOKEN", "PGPASSWORD", "DATABASE_URL", "https_proxy", "ANYTHING_ELSE")
    for name in names:
        monkeypatch.setenv(name, "hidden")
    seen = tmp_path / "environment"
    commands = stage.runner(python(f"import os; open({str(seen)!r}, 'w').write(repr(dict(os.environ)))"))
    commands.start(kind, stage.run, stage.host)
    assert stage.ended(commands, kind).status == 0
    environment = ast.literal_eval(seen.read_text())
    assert (environment["MAINTENANCE_HOST"], environment["MAINTENANCE_HOST_ID"]) == ("h1", stage.host.host)
    assert environment["PATH"]
    assert not {"hidden"} & {*environment.values()}


@pytest.mark.parametrize(
    "command",
    ["/no/such/command", 'unbalanced "', "/dev/null", "/", "nul\0in it", '""', " "],
    ids=["absent", "unbalanced", "not-executable", "folder", "nul", "empty-word", "blank"],
)
@pytest.mark.parametrize("kind", CommandKind)
def test_what_cannot_be_started_has_failed(stage: Stage, kind: CommandKind, command: str) -> None:
    commands = stage.runner(command)
    commands.start(kind, stage.run, stage.host)
    found = stage.ended(commands, kind)
    assert found.status
    assert found.text
    assert not found.interrupted


def test_its_last_lines_are_shown_while_it_runs_and_afterwards(stage: Stage) -> None:
    commands = stage.runner("sh -c 'seq 9; echo; kill -STOP $$; echo red; exit 3'")
    commands.start(CHECK, stage.run, stage.host)
    runs = stage.printed(commands, CHECK, "9")
    assert runs.runs
    assert runs.text == "7 / 8 / 9"
    eventually(
        lambda: any(one.status() == psutil.STATUS_STOPPED for one in stage.processes), _PATIENCE_SECONDS
    )
    for process in stage.processes:
        process.send_signal(signal.SIGCONT)
    ended = stage.ended(commands, CHECK)
    assert (ended.status, ended.text, ended.interrupted) == (3, "8 / 9 / red", "")


#: What does not end, and does not want to be ended, each in another way.
NEVER_ENDING = {
    "sleeps": "sleep 3600",
    "ignores SIGTERM": "sh -c \"trap '' TERM; while :; do sleep 1; done\"",
    "has grandchildren that ignore SIGTERM": (
        "sh -c \"trap '' TERM; (sh -c 'sleep 3600 & sleep 3600' & sleep 3600) & wait\""
    ),
    "leaves its session": "sh -c 'setsid sleep 3600 & setsid setsid sleep 3600 & sleep 3600'",
    "leaves a daemon that holds its output": (
        "sh -c 'setsid sleep 3600 & setsid sh -c \"sleep 3600 & exit\"; sleep 3600'"
    ),
    "floods its output": "sh -c 'yes & yes 1>&2'",
    "floods one line": "sh -c \"trap '' TERM; exec cat /dev/zero\"",
    "closes its output": "sh -c 'exec >&- 2>&-; sleep 3600'",
    "is stopped": "sh -c 'kill -STOP $$; sleep 3600'",
    "starts others again and again": "sh -c 'while :; do setsid sleep 3600 & sleep 0.01; done'",
}


#: Its bound, and that the enforcer leads no more that began it, and says no more until when it does.
ENDS = {"was ended after 0.5 s": (0.5, math.inf), "stood still and led no more": (3600.0, 0.5)}


@pytest.mark.parametrize("why", ENDS)
@pytest.mark.parametrize("command", NEVER_ENDING.values(), ids=NEVER_ENDING)
def test_it_is_ended_in_time_with_all_that_it_has_started(stage: Stage, command: str, why: str) -> None:
    seconds, leads_seconds = ENDS[why]
    commands = stage.runner(command, seconds)
    commands.lead_until(boot_clock() + leads_seconds)
    commands.start(WORK, stage.run, stage.host)
    assert stage.ended(commands, WORK).interrupted.endswith(why)
    assert not stage.processes


@pytest.mark.parametrize("command", NEVER_ENDING.values(), ids=NEVER_ENDING)
def test_it_ends_where_it_is_stopped_and_with_the_enforcer(
    stage: Stage, command: str, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    commands = stage.runner(f"sh -c {shlex.quote(f'touch {begun}; {command}')}")
    commands.start(WORK, stage.run, stage.host)
    eventually(begun.exists, _PATIENCE_SECONDS)
    begun.unlink()
    commands.stop(stage.run, stage.host, WORK)
    assert stage.ended(commands, WORK).interrupted.startswith("was stopped")
    assert not stage.processes
    commands.start(CHECK, stage.run, stage.host)
    eventually(begun.exists, _PATIENCE_SECONDS)
    began = time.monotonic()
    commands.leave()
    assert time.monotonic() - began < _PATIENCE_SECONDS / 6
    stage.leave_nothing()


def test_it_goes_on_while_the_lease_is_renewed(stage: Stage, tmp_path: Path) -> None:
    goes_on = tmp_path / "goes-on"
    commands = stage.runner(f"sh -c 'until [ -e {goes_on} ]; do sleep 0.01; done; echo done'")
    began = boot_clock()
    commands.lead_until(began + 20.0)
    commands.start(CHECK, stage.run, stage.host)
    over = boot_clock() + 1.0
    commands.lead_until(over)
    commands.lead_until(began + 3600.0)
    while boot_clock() < over + 0.2:
        assert stage.status(commands, CHECK).runs
    goes_on.touch()
    assert stage.ended(commands, CHECK).text == "done"


def test_what_prints_without_end_mostly_waits(stage: Stage) -> None:
    commands = stage.runner(NEVER_ENDING["floods its output"])
    commands.start(WORK, stage.run, stage.host)
    stage.printed(commands, WORK, "y")
    until, asked = time.monotonic() + 1.0, 0
    while time.monotonic() < until:
        assert stage.status(commands, WORK).runs
        asked += 1
    process = commands._started[WORK, "run", stage.host.host].process
    assert process is not None
    switches = [one.num_ctx_switches() for one in (psutil.Process(process.pid), *stage.processes)]
    # Each question reads what stands in the pipe, and so lets it print that much again.
    assert sum(one.voluntary for one in switches) < 200 + 4 * asked


def test_one_that_prints_as_it_tidies_up_does_so_though_the_enforcer_is_gone(
    stage: Stage, tmp_path: Path
) -> None:
    begun, tidied = tmp_path / "begun", tmp_path / "tidied"
    tidy = f"sleep 0.6; echo tidying; touch {tidied}; exit"
    line = f"trap {shlex.quote(tidy)} TERM; touch {begun}; while :; do sleep 0.1; done"
    commands = stage.runner(f"sh -c {shlex.quote(line)}")
    commands.start(WORK, stage.run, stage.host)
    eventually(begun.exists, _PATIENCE_SECONDS)
    process = commands._started[WORK, "run", stage.host.host].process
    assert process is not None
    assert process.stdout is not None
    commands.leave()
    process.stdout.close()
    stage.leave_nothing()
    assert tidied.exists()


def test_what_it_leaves_behind_is_ended_with_it(stage: Stage) -> None:
    commands = stage.runner("sh -c 'setsid sleep 3600 & sleep 3600 & echo done'")
    commands.start(CHECK, stage.run, stage.host)
    found = stage.ended(commands, CHECK)
    assert (found.status, found.text, found.interrupted) == (0, "done", "")
    assert not stage.processes


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_whose_own_process_is_killed_it_is_interrupted(stage: Stage, number: signal.Signals) -> None:
    commands = stage.runner("sleep 3600")
    commands.start(WORK, stage.run, stage.host)
    started = commands._started[WORK, "run", stage.host.host].process
    assert started is not None
    while not psutil.Process(started.pid).children():
        time.sleep(0.005)
    started.send_signal(number)
    assert stage.ended(commands, WORK).interrupted
    stage.leave_nothing()


def test_a_command_whose_parent_is_gone_before_it_is_bound_to_it_does_not_run(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    gone = psutil.Process().ppid()
    bound = functools.partial(command_process._die_with_parent, gone)
    subprocess.run(["touch", ran], preexec_fn=bound)
    assert not ran.exists()
    bound = functools.partial(command_process._die_with_parent, os.getpid())
    subprocess.run(["touch", ran], preexec_fn=bound, check=True)
    assert ran.exists()


@pytest.mark.parametrize("kind", CommandKind)
def test_one_of_a_kind_at_a_time(stage: Stage, kind: CommandKind, tmp_path: Path) -> None:
    log = tmp_path / "starts"
    commands = stage.runner(f"sh -c 'echo begun | tee -a {log}; sleep 3600'")
    for _ in range(5):
        commands.start(kind, stage.run, stage.host)
        assert stage.printed(commands, kind, "begun").runs
    assert log.read_text().split() == ["begun"]


def test_the_work_is_never_run_twice_whenever_the_enforcer_is_killed(stage: Stage, tmp_path: Path) -> None:
    log = tmp_path / "starts"
    first = stage.runner(f"sh -c 'echo begun | tee -a {log}; sleep 3600'")
    first.start(WORK, stage.run, stage.host)
    assert stage.printed(first, WORK, "begun").runs
    second = stage.runner(f"sh -c 'echo again >> {log}'")
    assert "ended with the enforcer" in stage.status(second, WORK).interrupted
    third = stage.runner("true")
    assert "ended with the enforcer" in stage.status(third, WORK).interrupted
    assert log.read_text().split() == ["begun"]


@pytest.mark.parametrize(("command", "status"), [("true", 0), ("sh -c 'echo no; exit 3'", 1)])
def test_how_the_work_ended_is_known_to_the_next_enforcer(stage: Stage, command: str, status: int) -> None:
    first = stage.runner(command)
    assert first.status(WORK, stage.run, stage.host) is None
    first.start(WORK, stage.run, stage.host)
    stage.ended(first, WORK)
    found = stage.status(stage.runner("false"), WORK)
    assert (found.status, found.interrupted) == (status, "")
    assert found.why == ("exit status 0" if status == 0 else "no")


def test_what_is_not_written_down_is_not_started(stage: Stage, tmp_path: Path) -> None:
    commands = stage.runner(f"touch {tmp_path / 'ran'}")
    with pytest.raises(LeaseLost):
        commands.start(WORK, stage.run, stage.host, epoch=7)
    commands.intents = Store("sqlite:////no/such/folder/store.db", engine="e")
    with pytest.raises(UserError):
        commands.start(WORK, stage.run, stage.host)
    assert not commands._started
    assert not (tmp_path / "ran").exists()


def test_a_run_that_ends_ends_its_commands(stage: Stage) -> None:
    commands = stage.runner("sh -c 'echo begun; sleep 3600'")
    for kind in CommandKind:
        commands.start(kind, stage.run, stage.host)
        assert stage.printed(commands, kind, "begun").runs
    commands.end(stage.run)
    stage.leave_nothing()
    assert not commands.intents.open_actions()
