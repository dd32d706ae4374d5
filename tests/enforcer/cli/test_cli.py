"""The command as its user meets it: plans as text and data, mistakes in one line, a clean end."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest

from ovirt_enforcer.cli.main import main
from ovirt_placement.cli.main import main as placement
from ovirt_placement.model import state_file
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Server, serve
from tests.builders import APART, TOGETHER, cluster, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.placement.cli.documents import defined
from tests.processes import completed
from tests.scenarios.stage import START
from tests.simulator.core import engines

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
  Not repaired: affinity group db, hard: apart (db1, db2)
    - beta has 476 MiB free
    - db1 to beta: 4096 MiB needed, 476 MiB free
    - db2 to beta: 4096 MiB needed, 476 MiB free
"""


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Be the command; the service in a process of its own, since it takes over what signals do."""
    words = [str(argument) for argument in arguments]
    if words[0] == "run":
        with TemporaryDirectory() as folder:
            return completed(main, words, Path(folder, "log"), ENVIRONMENT)
    said, complaints = StringIO(), StringIO()
    with redirect_stdout(said), redirect_stderr(complaints):
        try:
            status = main(words)
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 0
    return subprocess.CompletedProcess(words, status, said.getvalue(), complaints.getvalue())


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    path.write_bytes(state_file.dumps(STATE))
    return path


@pytest.fixture
def server() -> Iterator[Server]:
    server = serve(Engine.from_snapshot(STATE, clock=START))
    yield server
    server.close()


class Configuration:
    """A configuration that fits, to be spoilt."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.path = write_configuration(folder, url)
        self.password = folder / "password"

    def add(self, text: str) -> None:
        with self.path.open("a") as file:
            file.write(text)


@pytest.fixture
def configuration(tmp_path: Path, server: Server) -> Configuration:
    return Configuration(tmp_path, server.api_url)


def test_it_names_its_version_and_says_what_it_is_for() -> None:
    completed = run("--version")
    assert (completed.stdout, completed.returncode) == (f"ovirt-enforcer {version('ovirt-placement')}\n", 0)
    assert "Finds VMs that violate affinity groups" in run("--help").stdout


def test_a_plan_of_a_state_file_says_what_and_why(state: Path) -> None:
    completed = run("plan", "--state", state)
    assert (completed.stdout, completed.stderr, completed.returncode) == (TEXT, "", 4)


def test_a_plan_of_an_engine_keeps_a_headroom_if_it_can_and_makes_no_store(
    configuration: Configuration,
) -> None:
    completed = run("plan", "--config", configuration.path)
    crowded = "  Takes of the headroom of beta: a hard rule needs it\n"
    observing = 'ovirt-enforcer is in observe mode: nothing is migrated; set mode = "enforce" in [enforcer]'
    held = f"  Not now: {observing}\n"
    text = TEXT.replace("  Not repaired", held + crowded + "  Not repaired", 1)
    assert (completed.stdout, completed.stderr, completed.returncode) == (text, "", 4)
    assert not (configuration.folder / "store.db").exists()


@pytest.mark.parametrize(
    ("groups", "status"), [((), 0), ("g1", 3), (("g1", "g2"), 4)], ids=["whole", "repaired", "left"]
)
def test_the_status_says_what_a_plan_comes_to(tmp_path: Path, groups: tuple[str, ...], status: int) -> None:
    path = tmp_path / "some.json"
    kept = tuple(one for one in STATE.affinity_groups if one.id in groups)
    path.write_bytes(state_file.dumps(msgspec.structs.replace(STATE, affinity_groups=kept)))
    assert run("plan", "--state", path).returncode == status


def test_another_strategy_and_what_is_to_be_repaired_can_be_chosen(state: Path) -> None:
    chosen = json.loads(
        run("plan", "--state", state, "--json", "--strategy", "greedy", "--repair", "soft").stdout
    )
    assert chosen["strategy"] == "greedy"
    assert chosen["clusters"][0]["steps"] == []
    mistaken = run("plan", "--state", state, "--repair", "all")
    assert mistaken.returncode == 2
    assert "neither hard nor soft" in mistaken.stderr


def test_a_plan_that_was_drawn_says_its_seed_and_is_repeated_by_it(state: Path) -> None:
    drawn = json.loads(run("plan", "--state", state, "--json", "--strategy", "random").stdout)
    (plan,) = drawn["clusters"]
    seed = str(plan["seed"])
    again = run("plan", "--state", state, "--json", "--strategy", "random", "--seed", seed)
    assert json.loads(again.stdout)["clusters"][0]["id"] == plan["id"]
    words = run("plan", "--state", state, "--strategy", "random", "--seed", seed).stdout
    assert f"(random, seed {seed}: a shorter plan may exist" in words
    for wrong, because in (
        (
            ("--strategy", "greedy", "--seed", "1"),
            "--seed goes with the strategy random; greedy draws nothing",
        ),
        (("--strategy", "random", "--seed", "-1"), "'-1' is not a non-negative integer"),
    ):
        refused = run("plan", "--state", state, *wrong)
        assert (refused.returncode, because in refused.stderr) == (2, True)


@pytest.mark.system
@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=pytest.mark.system), signal.SIGINT])
def test_a_daemon_is_ready_dry_by_default_and_ends_cleanly(
    configuration: Configuration, server: Server, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [COMMAND, "run", "--config", str(configuration.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as daemon:
        assert daemon.stdout is not None
        assert daemon.stderr is not None
        assert daemon.stdout.readline() == f"ovirt-enforcer: watching {server.url} (mode observe)\n"
        while "observe mode" not in daemon.stderr.readline():
            pass
        daemon.send_signal(number)
        assert daemon.wait(30) == 0
        assert daemon.stdout.read() == ""
        assert "Traceback" not in daemon.stderr.read()


def refused(completed: subprocess.CompletedProcess[str], *words: str) -> None:
    assert completed.returncode == 2
    assert completed.stdout == ""
    (line,) = completed.stderr.splitlines()
    assert line.startswith("ovirt-enforcer: ")
    for word in words:
        assert word in line, line


@pytest.mark.parametrize("command", ["run", "plan"])
class TestMistakes:
    def test_wrong_password(self, configuration: Configuration, command: str) -> None:
        configuration.password.write_text("guess")
        refused(run(command, "--config", configuration.path), "password_file")

    def test_unknown_key(self, configuration: Configuration, command: str) -> None:
        configuration.add("[enforcer]\nintervall_seconds = 5\n")
        refused(
            run(command, "--config", configuration.path),
            str(configuration.path),
            "[enforcer]",
            "interval_seconds",
        )


def test_a_plan_of_one_cluster_alone(state: Path) -> None:
    printed = run("plan", "--state", state, "--cluster", "cluster1", "--json").stdout
    (plan,) = defined(printed, "Plans")["clusters"]
    assert plan["cluster"]["name"] == "cluster1"
    assert 'no cluster "blue"' in run("plan", "--state", state, "--cluster", "blue").stderr


_PLACEMENT = (
    *("violations", "why a", "why no-such-vm", "where a", "conflicts", "ha-check", "status", "doctor"),
    *("snapshot", "what-if --down h1", "groups list", "groups lost", "groups remove no-such-group"),
    *("groups add more --cluster blue --vm a --vm b --vms-rule negative", "groups remove apart"),
    *("rules list", "rules check", "keys list", "keys explain a", "keys check"),
    *("setup --dry-run", "setup --undo --policy none"),
)
_ENFORCER = (
    *("plan", "plan --strategy greedy", "simulate-policy", "maintenance plan h1", "why-not a", "make-room a"),
    *("history", "pause", "resume", "approve --list"),
)
COMMANDS = [*((placement, line) for line in _PLACEMENT), *((main, line) for line in _ENFORCER)]


@pytest.fixture
def blue() -> Iterator[Server]:
    state = (
        cluster(name="blue", ha_reservation=True),
        host("h1"),
        host("h2"),
        vm("a", "h1"),
        vm("b", "h1"),
        group("apart", APART, "a b"),
    )
    with closing(serve(engines.engine(*state))) as running:
        yield running


@pytest.mark.system
@pytest.mark.parametrize("user", ["admin", "reader", "user"])
def test_no_command_leaves_a_session(
    blue: Server, tmp_path: Path, user: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = write_configuration(tmp_path, blue.api_url, user=f"{user}@internal")
    assert placement(["store", "init", "--config", str(config)]) == 0
    left, asked = {}, 0
    for command, line in COMMANDS:
        command([*line.split(), "--config", str(config)])
        if number := blue.tokens.revoke_all():
            left[line] = number
        complaint = capsys.readouterr().err
        assert "Traceback" not in complaint, line
        asked += "unrecognized arguments" not in complaint
    assert left == {}
    assert asked == len(COMMANDS)
