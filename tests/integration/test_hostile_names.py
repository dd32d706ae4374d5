"""What somebody names a VM, a host or a group can neither steer a terminal nor pass for a line of an answer.

All commands are run on an engine, on a state file and on a store that are full of such names.
"""

import json
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

import ovirt_enforcer.cli.main
import ovirt_placement.cli.main
from ovirt_placement.model import Snapshot, state_file
from ovirt_scheduler_proxy import cli as proxy
from ovirt_simulator import cli as simulator
from tests.builders import APART, TOGETHER, cluster, group, host, label, snapshot, vm
from tests.docs.shown import subcommands
from tests.enforcer.actions import bench as benches
from tests.enforcer.actions.bench import Bench
from tests.golden.questions import QUESTIONS

#: What no line of an answer of ours begins with.
FORGED = "FORGED"
#: Ends of lines, a control sequence of 8 bits, and characters that turn the order of others around.
STEERING = "\x9b2J\x85\u2028\u2029\u202e\u2066\u200f\ufeff\U000e0001\x7f"
#: What no XML can hold, and a state file can.
ESCAPES = "\x1b[2J\x1b]0;title\x07\r\x00"

COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "ovirt-placement": ovirt_placement.cli.main.main, "ovirt-enforcer": ovirt_enforcer.cli.main.main,
    "ovirt-scheduler-proxy": proxy.main, "ovirt-simulator": simulator.main,
}  # fmt: skip

#: Those that answer for a state file, and those that need an engine or a store; all but the services.
OF_STATES = (
    *(one.replace("room VM", "room rests").replace("VM", "a").replace("HOST", "h1") for one in QUESTIONS),
    *("ovirt-placement snapshot", "ovirt-placement keys check", "ovirt-placement rules check"),
)
OF_ENGINES = """
    ovirt-enforcer approve --list
    ovirt-enforcer refuse --dry-run PLAN --reason REASON
    ovirt-enforcer approve PLAN
    ovirt-enforcer pause --reason REASON
    ovirt-enforcer pause --list
    ovirt-enforcer why-not a
    ovirt-enforcer resume
    ovirt-enforcer history
    ovirt-enforcer why-not b
    ovirt-enforcer undo PLAN
    ovirt-placement status
    ovirt-enforcer status
    ovirt-placement keys export
    ovirt-placement keys set --on server a calm 1 1
    ovirt-placement keys unset --on server a calm
    ovirt-placement keys prune
    ovirt-placement groups edit --priority 3 g1
    ovirt-placement groups edit --what-if --priority 4 g2
    ovirt-placement groups lost
    ovirt-placement groups remove g3
    ovirt-placement setup --dry-run
    ovirt-placement setup --all-policies
    ovirt-placement store backup BACKUP
    ovirt-placement doctor
"""


def lines(commands: str) -> list[str]:
    return commands.split("\n")[1:-1]


def name_of(kind: str, more: str = "") -> str:
    return f"{kind}\n{FORGED}\n- {FORGED}{STEERING}{FORGED}\r{FORGED}{more}"


def hostile(more: str = "") -> Snapshot:
    """A cluster with much to report about, whose ids are harmless and whose names are not."""
    found = snapshot(
        cluster("c1", name=name_of("cluster", more), ha_reservation=True),
        *(host(f"h{at}", name=name_of(f"host{at}", more), cluster="c1") for at in (1, 2, 3)),
        vm("a", "h1", name=name_of("vm-a", more), cluster="c1", ha=True),
        vm("b", "h2", name=name_of("vm-b", more), cluster="c1", migratable=False),
        vm("c", "h2", name=name_of("vm-c", more), cluster="c1", tags=(name_of("tag", more),)),
        vm("rests", name=name_of("vm-rests", more), cluster="c1"),
        group("g1", TOGETHER, "a b", name=name_of("group1", more), cluster="c1"),
        group("g2", APART, "b c", name=name_of("group2", more), cluster="c1"),
        group("g3", TOGETHER, "b c", name=name_of("group3", more), cluster="c1"),
        label("l1", "a", "h1"),
    )
    labels = tuple(msgspec.structs.replace(one, name=name_of("label", more)) for one in found.affinity_labels)
    return msgspec.structs.replace(found, affinity_labels=labels)


def judge(printed: str, command: str) -> None:
    steering = {one for one in printed if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}
    assert steering <= {"\n"}, f"{command}: {steering!r}"
    begun = [line for line in printed.split("\n") if line.strip(" -|'\"").startswith(FORGED)]
    assert not begun, f"{command}: {printed}"


class Asking:
    """Runs commands, and judges what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str], options: Sequence[str]) -> None:
        self._capsys = capsys
        self._options = options

    def ask(self, command: str, **words: str) -> str:
        name, *arguments = [words.get(word, word) for word in command.split()]
        self._capsys.readouterr()
        status = COMMANDS[name]([*arguments, *self._options])
        printed = self._capsys.readouterr()
        # A mistake is reported in one line, too.
        assert status != 2 or printed.err.count("\n") == 1, f"{command}: {printed.err}"
        judge(printed.out, command)
        judge(printed.err, command)
        return printed.out

    def data(self, command: str, **words: str) -> Any:
        return json.loads(self.ask(f"{command} --json", **words))


@pytest.mark.parametrize("command", OF_STATES)
def test_names_of_a_state_file(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "state.json"
    file.write_bytes(state_file.dumps(hostile(ESCAPES)))
    asking = Asking(capsys, ["--state", str(file)])
    asking.ask(command)
    if "snapshot" in command:
        again = tmp_path / "again.json"
        again.write_text(asking.ask(command))
        assert state_file.load(again) == state_file.load(file)
    else:
        assert asking.data(command) is not None


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("SUDO_USER", name_of("root"))
    with benches.bench(tmp_path, hostile(), {"mode": "approve"}) as made:
        yield made


@pytest.mark.system
def test_names_of_an_engine_and_what_is_remembered_of_them(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration = tmp_path / "placement.toml"
    asking = Asking(capsys, ["--config", str(configuration)])
    with bench.enforcing() as daemon:
        bench.run(daemon, 30.0)
        (waiting,) = asking.data("ovirt-enforcer approve --list")
        words = {"BACKUP": str(tmp_path / "backup"), "PLAN": waiting["plan"], "REASON": name_of("why")}
        for command in lines(OF_ENGINES):
            asking.ask(command, **words)
            bench.run(daemon, bench.now + 30.0)
    assert bench.begun()


@pytest.mark.system
def test_names_in_a_plan_that_is_applied(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asking = Asking(capsys, ["--config", str(tmp_path / "placement.toml")])
    plans = tmp_path / "plans.json"
    plans.write_text(asking.ask("ovirt-enforcer plan --json"))
    with bench.enforcing() as daemon:
        bench.run(daemon, 30.0)
        asking.ask("ovirt-enforcer apply --yes PLANS", PLANS=str(plans))
        bench.run(daemon, 90.0)
        asking.ask("ovirt-enforcer history")
    assert bench.begun()


def test_no_command_is_left_out() -> None:
    others = {"ovirt-placement inventory", "ovirt-enforcer run", "ovirt-enforcer apply"}
    asked = {" ".join(line.split()[:2]) for line in (*OF_STATES, *lines(OF_ENGINES))}
    known = {
        " ".join(parser.prog.split()[:2])
        for module in (ovirt_placement.cli.main, ovirt_enforcer.cli.main)
        for parser in subcommands(module._parser())
    }
    assert known - asked == others
