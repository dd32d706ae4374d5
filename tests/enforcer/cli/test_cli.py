"""The command as its user meets it: plans as text and data, mistakes in one line, a clean end."""

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

import pytest

from ovirt_enforcer.cli.main import main
from ovirt_placement.model import state_file
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server, serve
from tests.builders import APART, TOGETHER, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.conftest import Ask, Said
from tests.golden import questions
from tests.processes import completed
from tests.scenarios.stage import START

COMMAND = str(Path(sys.executable).with_name("ovirt-enforcer"))
ENVIRONMENT = {name: value for name, value in os.environ.items() if "OVIRT" not in name}
STATE = snapshot(
    host("h1", name="alpha"),
    host("h2", name="beta", free_mb=1500),
    vm("v1", "h1", name="web1"),
    vm("v2", "h2", name="web2", migratable=False),
    vm("v3", "h1", name="db1", needs_mb=4096),
    vm("v4", "h1", name="db2", needs_mb=4096),
    group("g1", TOGETHER, "v1 v2", name="web"),
    group("g2", APART, "v3 v4", name="db"),
)

TEXT = """\
Cluster cluster1: 1 migration, the fewest that repair all that can be repaired (optimal; proven).
  1. web1 from alpha to beta: repairs affinity group web
  Not now: ovirt-enforcer is in observe mode: nothing is migrated; set mode = "enforce" in [enforcer]
  Takes of the headroom of beta: a hard rule needs it
  Not repaired: affinity group db, hard: apart (db1, db2)
    - beta has 476 MiB free
    - db1 to beta: 4096 MiB needed, 476 MiB free
    - db2 to beta: 4096 MiB needed, 476 MiB free
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    path.write_bytes(state_file.dumps(STATE))
    return path


def test_it_names_its_version_and_says_what_it_is_for(ask: Ask) -> None:
    assert ask("--version") == Said(0, f"ovirt-enforcer {version('ovirt-placement')}\n")
    assert "Finds VMs that violate affinity groups" in ask("--help").out


def test_a_plan_of_an_engine_keeps_a_headroom_if_it_can_and_makes_no_store(ask: Ask, file: Path) -> None:
    assert ask("plan") == Said(4, TEXT)
    assert not file.with_name("store.db").exists()


def test_another_strategy_and_what_is_to_be_repaired_can_be_chosen(ask: Ask, state: Path) -> None:
    chosen = json.loads(ask(f"plan --state {state} --json --strategy greedy --repair soft").out)
    assert (chosen["strategy"], chosen["clusters"][0]["steps"]) == ("greedy", [])


def test_a_plan_that_was_drawn_says_its_seed_and_is_repeated_by_it(ask: Ask, state: Path) -> None:
    draw = f"plan --state {state} --strategy random"
    (plan,) = json.loads(ask(f"{draw} --json").out)["clusters"]
    seed = plan["seed"]
    assert json.loads(ask(f"{draw} --json --seed {seed}").out)["clusters"][0]["id"] == plan["id"]
    assert f"(random, seed {seed}: a shorter plan may exist" in ask(f"{draw} --seed {seed}").out


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ("--repair all", "neither hard nor soft"),
        ("--cluster blue", 'no cluster "blue"'),
        ("--strategy greedy --seed 1", "--seed goes with the strategy random; greedy draws nothing"),
        ("--strategy random --seed -1", "'-1' is not a non-negative integer"),
    ],
)
def test_what_cannot_be_planned(ask: Ask, state: Path, options: str, complaint: str) -> None:
    status, out, err = ask(f"plan --state {state} {options}")
    assert (status, out, complaint in err) == (2, "", True), err


@pytest.mark.system
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_daemon_is_ready_dry_by_default_and_ends_cleanly(
    file: Path, server: Server, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [COMMAND, "run", "--config", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as daemon:
        assert daemon.stdout is not None
        assert daemon.stderr is not None
        assert daemon.stdout.readline() == f"ovirt-enforcer: watching {server.url} (mode observe)\n"
        while "observe mode" not in daemon.stderr.readline():
            pass
        daemon.send_signal(number)
        assert (daemon.wait(30), daemon.stdout.read()) == (0, "")
        assert "Traceback" not in daemon.stderr.read()


UNKNOWN_KEY = "[enforcer]\nintervall_seconds = 5\n"
NO_FOLDER = "No such file or directory: its file and folder must be writable"


@pytest.mark.parametrize("command", ["run", "plan"])
@pytest.mark.parametrize(
    ("more", "password", "complaint"),
    [
        (UNKNOWN_KEY, "password", "/placement.toml: [enforcer] intervall_seconds: unknown key"),
        ("", "guess", "password_file"),
    ],
    ids=["unknown key", "wrong password"],
)
def test_mistakes_are_one_line(
    ask: Ask, server: Server, tmp_path: Path, command: str, more: str, password: str, complaint: str
) -> None:
    file = write_configuration(tmp_path, server.api_url, more=more)
    file.with_name("password").write_text(password)
    refused(ran(file) if command == "run" else ask(command), complaint)


@pytest.mark.system
@pytest.mark.parametrize(
    ("more", "store_url", "complaint"),
    [
        ('[enforcer]\nmetrics = "9090"\n', None, "[enforcer] metrics '9090' is not HOST:PORT"),
        ("", "sqlite:////proc/store.db", NO_FOLDER),
        ("", "sqlite:///store.db", "is relative to wherever a command is run"),
    ],
    ids=["metrics", "no folder", "relative"],
)
def test_what_a_service_cannot_do_without_ends_it_with_one_line(
    server: Server, tmp_path: Path, more: str, store_url: str | None, complaint: str
) -> None:
    refused(ran(write_configuration(tmp_path, server.api_url, store_url=store_url, more=more)), complaint)


def ran(file: Path) -> Said:
    """In a process of its own, since a service takes over what signals do."""
    ended = completed(main, ["run", "--config", str(file)], file.with_name("log"), ENVIRONMENT)
    return Said(ended.returncode, ended.stdout, ended.stderr)


def refused(said: Said, complaint: str) -> None:
    (line,) = said.err.splitlines()
    assert (said.status, said.out) == (2, "")
    assert line.startswith("ovirt-enforcer: ")
    assert complaint in line, line


@pytest.mark.system
@pytest.mark.parametrize("user", ["admin", "reader", "user"])
def test_no_command_leaves_a_session(tmp_path: Path, user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the engine answers or refuses."""
    monkeypatch.chdir(tmp_path)
    for name, content in questions.FILES.items():
        Path(name).write_text(content)
    with closing(serve(Engine.from_snapshot(questions.STATE, clock=START))) as server:
        file = write_configuration(tmp_path, server.api_url, user=f"{user}@internal")
        for line in questions.LINES.split("\n")[1:-1]:
            said = questions.ask(line.lstrip("+"), "--config", str(file)).text
            assert server.tokens.revoke_all() == 0, line
            assert "Traceback" not in said, line
