"""Plans that are drawn by lot: a daemon says with which seed, and what it drew stands until it begins."""

from __future__ import annotations

import re
from pathlib import Path

from ovirt_placement.model import state_file
from ovirt_placement.planning.assignment.catalogue import StrategyName, strategy
from ovirt_placement.planning.planner import make_plan
from tests.builders import APART, CLUSTER, group, host, snapshot, vm
from tests.scenarios.stage import play

STATE = snapshot(
    *(host(f"h{number}") for number in range(4)),
    *(vm(f"{twin}{number}", f"h{number}") for number in range(3) for twin in "ab"),
    *(group(f"g{number}", APART, f"a{number} b{number}") for number in range(3)),
)


def reported(folder: Path, mode: str) -> list[str]:
    """What a daemon says in five minutes."""
    folder.mkdir()
    (folder / "state.json").write_bytes(state_file.dumps(STATE))
    (folder / "story.toml").write_text(
        f'until = 300\n[enforcer]\nmode = "{mode}"\nstrategy = "random"\nmemory_headroom_percent = 0\n'
        "cpu_headroom_percent = 0\n"
    )
    return play(folder, folder)


def test_what_was_drawn_stands_until_somebody_approves_of_it(tmp_path: Path) -> None:
    """It is planned again every minute meanwhile."""
    waiting = {
        found[1]
        for line in reported(tmp_path / "approve", "approve")
        if (found := re.search(r"plan (\S+) waits for an approval", line))
    }
    assert len(waiting) == 1


def test_each_daemon_draws_for_itself_and_says_with_what_the_plan_is_repeated(tmp_path: Path) -> None:
    seeds = []
    for number in range(2):
        log = "\n".join(reported(tmp_path / str(number), "observe"))
        (summary,) = set(re.findall(r"\(random, seed (\d+):", log))
        plan = make_plan(STATE, CLUSTER, strategy=strategy(StrategyName.RANDOM, int(summary)))
        (step,) = plan.steps
        assert f"1. {step.vms[0]} from {step.sources[0]} to {step.target}: repairs" in log
        seeds.append(summary)
    assert seeds[0] != seeds[1]


def test_when_one_is_carried_out_the_next_is_drawn(tmp_path: Path) -> None:
    log = reported(tmp_path / "enforce", "enforce")
    assert len(set(re.findall(r"\(random, seed (\d+)", "\n".join(log)))) == 3
    hosts = {line.split()[-3]: line.split()[-1] for line in log if " = " in line}
    assert all(hosts[f"a{number}"] != hosts[f"b{number}"] for number in range(3))
