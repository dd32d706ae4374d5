"""Files that have no end, are no files, or nest without end: whatever command reads one, a line says so."""

import gc
import json
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import ovirt_enforcer.cli.main
import ovirt_placement.cli.main
from tests.builders import TOGETHER, group, host, snapshot, vm
from tests.enforcer.actions import bench as benches

pytestmark = pytest.mark.system

#: Much less than the machine has, and enough for whatever a file may rightly hold.
MEMORY = 6 * 2**30

COMMANDS = {"ovirt-placement": ovirt_placement.cli.main.main, "ovirt-enforcer": ovirt_enforcer.cli.main.main}
READING = [
    "ovirt-placement violations --state FILE", "ovirt-placement snapshot --state FILE",
    "ovirt-placement keys import FILE", "ovirt-placement store restore FILE",
    "ovirt-placement status --config FILE", "ovirt-enforcer plan --state FILE", "ovirt-enforcer apply FILE",
]  # fmt: skip


@pytest.fixture
def small_machine() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def own_garbage_only() -> Iterator[None]:
    """What other tests left is not collected at the end of the stack, where finalizers fail and report it."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def configuration(tmp_path: Path) -> Iterator[Path]:
    state = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h2"), group("pair", TOGETHER, "a b"))
    with benches.bench(tmp_path, state):
        yield tmp_path / "placement.toml"


def zeros(folder: Path) -> Path:
    return Path("/dev/zero")


def nested(folder: Path) -> Path:
    file = folder / "nested"
    file.write_text("[" * 200_000)
    return file


def nested_within_a_plan(folder: Path) -> Path:
    """As deep as a parser may just take it: that of some Pythons does, and then there is no step."""
    file = folder / "nested"
    plan = {"steps": [], "id": "p", "cluster": {"id": "c"}}
    file.write_text(json.dumps({"clusters": [plan]})[:-3] + ', "x": ' + "[" * 5000 + "]" * 5000 + "}]}")
    return file


@pytest.mark.usefixtures("small_machine", "own_garbage_only")
@pytest.mark.parametrize("make", [zeros, nested, nested_within_a_plan], ids=lambda make: make.__name__)
@pytest.mark.parametrize("command", READING)
def test_what_cannot_be_read_is_reported_in_one_line(
    command: str,
    make: Callable[[Path], Path],
    configuration: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name, *words = command.replace("FILE", str(make(tmp_path))).split()
    if "--config" not in words and "--state" not in words:
        words += ["--config", str(configuration)]
    status = COMMANDS[name](words)
    printed = capsys.readouterr()
    if make is nested_within_a_plan and status == 0:
        assert printed.out == "Nothing is to be done: no cluster has a step.\n"
    else:
        assert (status, printed.out, printed.err.count("\n")) == (2, "", 1)
