"""Without the extra `planner` all works but the strategy `optimal`: in a process that lacks its packages."""

import subprocess
import sys
from pathlib import Path

import pytest

from ovirt_placement.model import state_file
from tests.builders import APART, group, host, snapshot, vm

pytest.importorskip("ovirt_enforcer")

#: Runs `ovirt-enforcer` where these packages are not to be found: OR-Tools and numpy, which comes with it.
WITHOUT = """
import sys

HIDDEN = ("ortools", "numpy")

class Hiding:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        hidden = name.partition(".")[0] in HIDDEN
        return None if hidden else self.finder.find_spec(name, path, target)

    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = map(Hiding, sys.meta_path)
from ovirt_enforcer.cli.main import main
sys.exit(main())
"""


@pytest.fixture
def state(tmp_path: Path) -> Path:
    path = tmp_path / "state.json"
    fixed = vm("c", "h2", migratable=False), vm("d", "h2", migratable=False)
    cluster = snapshot(
        host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), *fixed,
        group("repairable", APART, "a b"), group("stuck", APART, "c d"),
    )  # fmt: skip
    path.write_bytes(state_file.dumps(cluster))
    return path


def ran(*arguments: str, code: str = WITHOUT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


def test_a_plan_is_greedy_and_says_so(state: Path) -> None:
    done = ran("plan", "--state", str(state))
    assert done.returncode == 4
    assert "(greedy; proven)" in done.stdout.splitlines()[0]
    assert "repairs affinity group repairable" in done.stdout
    assert "stays where it is" in done.stdout
    assert done.stderr == ""


def test_the_optimal_strategy_is_refused_in_one_line(state: Path) -> None:
    done = ran("plan", "--state", str(state), "--strategy", "optimal")
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "ovirt-placement[planner]" in line


@pytest.mark.system
def test_a_plan_is_optimal_without_pandas(state: Path) -> None:
    done = ran("plan", "--state", str(state), code=WITHOUT.replace('("ortools", "numpy")', '("pandas",)'))
    assert "(optimal; proven)" in done.stdout.splitlines()[0]
    assert done.stderr == ""
