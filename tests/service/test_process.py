"""However a command ends, it ends without a traceback, with a status that means nothing else."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.model import state_file
from ovirt_service.errors import EXIT_STATUS
from ovirt_service.process import BackgroundThread, guarded
from tests.builders import APART, group, host, snapshot, vm
from tests.paths import PLUGINS

BIN = Path(sys.executable).parent


@pytest.fixture
def state(tmp_path: Path) -> str:
    """One violated rule, of VMs with names in another script."""
    file = tmp_path / "state.json"
    parts = (host("h1"), vm("v1", "h1", name="名前"), vm("v2", "h1"), group("g1", APART, "v1 v2"))
    file.write_bytes(state_file.dumps(snapshot(*parts)))
    return str(file)


def commands(state: str) -> list[list[str]]:
    return [
        ["ovirt-placement", "violations", "--state", state],
        ["ovirt-placement", "snapshot", "--state", state],
        ["ovirt-enforcer", "plan", "--state", state],
        ["ovirt-scheduler-proxy", "check", "--plugins", str(PLUGINS)],
        ["ovirt-simulator", "generate", "--hosts", "2", "--vms", "2"],
    ]


def ran(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.run(arguments, text=True, timeout=60, **{**pipes, **options})


def ended(arguments: list[str], stdout: int) -> tuple[int, str]:
    """Run a command; return its status and its complaints."""
    done = ran(str(BIN / arguments[0]), *arguments[1:], stdout=stdout)
    return done.returncode, done.stderr


@pytest.mark.system
@pytest.mark.parametrize("number", range(5))
def test_a_reader_that_goes_away_ends_it_silently(state: str, number: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert ended(commands(state)[number], writing) == (128 + signal.SIGPIPE, "")
    finally:
        os.close(writing)


@pytest.mark.system
@pytest.mark.parametrize("number", range(5))
def test_a_full_disk_is_reported_and_is_no_answer(state: str, number: int) -> None:
    arguments = commands(state)[number]
    with open("/dev/full", "w") as full:
        found = ended(arguments, full.fileno())
    assert found == (2, f"{arguments[0]}: cannot write the answer: No space left on device\n")


def test_what_is_written_without_an_output_goes_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of `ovirt-placement snapshot >&-`."""
    monkeypatch.setattr(sys, "stdout", None)
    assert guarded("command", lambda: min(0, sys.stdout.buffer.write(b"answer"))) == 0


def test_a_name_that_the_terminal_cannot_write_is_escaped(state: str) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = ran(str(BIN / "ovirt-placement"), "violations", "--state", state, env=environment)
    assert (done.returncode, done.stderr) == (1, "")
    assert "\\u540d\\u524d on h1" in done.stdout


@pytest.mark.parametrize("when", ["import", "run"])
def test_ctrl_c_leaves_no_traceback(tmp_path: Path, when: str) -> None:
    """While a command is being imported, and while it runs."""
    kill = "os.kill(os.getpid(), signal.SIGINT)"
    main = kill if when == "import" else f"main = lambda: process.guarded('it', lambda: {kill})"
    (tmp_path / "it.py").write_text(f"import os, signal\nfrom ovirt_service import process\n{main}\n")
    program = "from ovirt_service import process\nexit(process.start('it'))"
    done = ran(sys.executable, "-c", program, cwd=tmp_path)
    assert done.returncode in (-signal.SIGINT, 128 + signal.SIGINT)
    assert done.stderr == ""


def test_every_command_starts_so() -> None:
    """Each installed script imports no more than it needs to be safe from Ctrl-C."""
    for name in ("ovirt-placement", "ovirt-enforcer", "ovirt-scheduler-proxy", "ovirt-simulator"):
        script = (BIN / name).read_text()
        (source,) = (line for line in script.splitlines() if line.startswith("from ovirt"))
        program = f"import sys\n{source}\nprint('msgspec' in sys.modules)"
        assert ran(sys.executable, "-c", program).stdout == "False\n", name


#: As a thread is that the system has, and that lacks the memory for its first step: nothing comes of it.
NOTHING_COMES_OF_IT = """
import threading
import ovirt_service.process as threads
threads._POLL_SECONDS = 0.01
for starts in ("_start_new_thread", "_start_joinable_thread"):
    setattr(threading, starts, lambda *arguments, **named: 1)
threads.BackgroundThread(target=print).start()
print("went on")
"""
#: As the system refuses one.
REFUSED = NOTHING_COMES_OF_IT.replace(
    "lambda *arguments, **named: 1",
    "lambda *arguments, **named: exec('raise RuntimeError(\"can\\'t start new thread\")')",
)


@pytest.mark.parametrize("program", [NOTHING_COMES_OF_IT, REFUSED], ids=["never begins", "refused"])
def test_a_process_whose_thread_does_not_begin_ends(program: str) -> None:
    ended = ran(sys.executable, "-c", program)
    assert (ended.returncode, ended.stdout) == (EXIT_STATUS, "")
    assert ended.stderr == "out of memory, or of threads: ends, as nothing can be relied on any more\n"


def test_one_that_begins_works_and_holds_up_no_end() -> None:
    done: list[str] = []
    thread = BackgroundThread(target=done.append, args=("work",), name="worker")
    thread.start()
    thread.join()
    assert (done, thread.name, thread.daemon) == (["work"], "worker", True)
