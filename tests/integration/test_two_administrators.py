"""Two administrators approve, pause, apply and undo in random orders: only what they let move moves.

The oracle knows the words that were said and the moves of the plans that they were said of, and nothing of
gates, planner or store. Hundreds of migrations leave neither descriptors nor threads behind.
"""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from ovirt_enforcer.cli.main import main
from ovirt_enforcer.service.daemon import Daemon
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.store.enforcer.intents import IntentState
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.enforcer.actions import bench as benches
from tests.enforcer.actions.bench import Bench, Settings
from tests.examples import seeds

PAIRS = ("a", "b", "c")
MOST_WORDS = 8
#: What keeps a VM still for a while is not what this is about.
SETTINGS: Settings = {
    "mode": "approve", "strategy": "greedy", "cooldown_seconds": 0.001, "cooldown_after_success_seconds": 0.0,
    "circle_seconds": 0.001, "vm_migrations_per_hour": 10000, "cluster_migrations_per_hour": 10000,
}  # fmt: skip

Move = tuple[str, str]


def pairs() -> Snapshot:
    return snapshot(
        *(host(name) for name in ("h1", "h2", "h3")),
        *(vm(name, "h1") for name in PAIRS),
        *(vm(f"{name}2", "h2", migratable=False) for name in PAIRS),
        *(group(f"pair-{name}", TOGETHER, f"{name} {name}2") for name in PAIRS),
    )


def moves_of(cluster: dict[str, Any]) -> set[Move]:
    return {(vm["id"], step["to"]["id"]) for step in cluster["steps"] for vm in step["vms"]}


class Administrator:
    """Knows what was printed for them last, which may be of old by now."""

    def __init__(self, name: str, folder: Path) -> None:
        self.seen: list[dict[str, Any]] = []
        self.file = folder / f"{name}.json"


class Office:
    """The administrators, what they have said, and what must follow from it."""

    def __init__(
        self, bench: Bench, folder: Path, capsys: pytest.CaptureFixture[str], random: Random
    ) -> None:
        self.bench = bench
        self.paused = False
        #: What the plan that was approved of or applied last moves.
        self.approved: set[Move] = set()
        self.said: list[str] = []
        self.migrated = 0
        self._random = random
        self._capsys = capsys
        self._configuration = str(folder / "placement.toml")
        self._administrators = [Administrator(name, folder) for name in ("eve", "adam")]

    def speak(self) -> None:
        """One of them says one word."""
        who = self._random.choice(self._administrators)
        often = (self._approve, self._resume)
        words = (*often, *often, self._list, self._pause, self._plan, self._apply, self._undo)
        word: Callable[[Administrator], None] = self._random.choice(words)
        self.said.append(f"{who.file.stem}: {word.__name__.strip('_')}")
        word(who)

    def _ask(self, *words: str) -> tuple[int, str]:
        self._capsys.readouterr()
        status = main([*words, "--config", self._configuration])
        printed = self._capsys.readouterr()
        assert status in (0, 1, 2, 3, 4), words
        assert status != 2 or printed.err.count("\n") == 1, printed.err
        return status, printed.out

    def _list(self, who: Administrator) -> None:
        _, printed = self._ask("approve", "--list", "--json")
        who.seen = json.loads(printed)

    def _approve(self, who: Administrator) -> None:
        for waiting in who.seen:
            status, _ = self._ask("approve", waiting["plan"])
            if status == 0:
                self.approved = {(vm, target) for vms, _, target in waiting["moves"] for vm in vms}

    def _pause(self, who: Administrator) -> None:
        assert self._ask("pause")[0] == 0
        self.paused = True

    def _resume(self, who: Administrator) -> None:
        assert self._ask("resume")[0] == 0
        self.paused = False

    def _plan(self, who: Administrator) -> None:
        who.file.write_text(self._ask("plan", "--json")[1])

    def _undo(self, who: Administrator) -> None:
        done = [one.plan for one in self.bench.intents() if one.plan and one.state is IntentState.DONE]
        if done:
            status, printed = self._ask("undo", self._random.choice(done), "--json")
            if status != 2:
                who.file.write_text(printed)

    def _apply(self, who: Administrator) -> None:
        if not who.file.exists():
            return
        status, printed = self._ask("apply", "--yes", str(who.file))
        if status == 0 and "Nothing is to be done" not in printed:
            (cluster,) = (one for one in json.loads(who.file.read_text())["clusters"] if one["steps"])
            self.approved = moves_of(cluster)

    def pass_time(self, daemon: Daemon, seconds: float) -> None:
        """Let the enforcer work, and judge what it began."""
        before = {intent.id for intent in self.bench.intents()}
        self.bench.run(daemon, self.bench.now + seconds)
        begun = {(one.vm, one.target) for one in self.bench.intents() if one.id not in before}
        self.migrated += len(begun)
        assert not (begun and self.paused), f"{begun} though paused: {self.said}"
        assert begun <= self.approved, f"{begun} of {self.approved}: {self.said}"

    def violate_a_rule(self) -> None:
        """The owner of the VMs wants one of the pairs the other way round."""
        name = f"pair-{self._random.choice(PAIRS)}"
        stands = next(one for one in self.bench.engine.snapshot().affinity_groups if one.id == name)
        rule = APART if stands.vms_rule == TOGETHER else TOGETHER
        self.bench.engine.affinity_groups.edit(name, vms_rule=rule)

    def settle(self, daemon: Daemon) -> None:
        """Whatever was said before: once one of them resumes and approves of what waits, all is repaired."""
        self.said.append("settle")
        self._resume(self._administrators[0])
        for _ in range(20):
            self._list(self._administrators[0])
            self._approve(self._administrators[0])
            self.pass_time(daemon, 70.0)
            if not self.bench.store.open_intents() and not find_violations(
                self.bench.engine.snapshot(), CLUSTER
            ):
                return
        raise AssertionError(f"not repaired: {self.said}")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with benches.bench(tmp_path, pairs(), SETTINGS) as made:
        yield made


_ORDERS = 98
#: By then connections and threads that stay are made, of which some come and go.
_WARM, _SPARE = 10, 40


def held() -> tuple[int, int]:
    """Descriptors and threads of this process."""
    return psutil.Process().num_fds(), threading.active_count()


@pytest.mark.nightly
@pytest.mark.parametrize("seed", seeds(4))
def test_nothing_moves_that_neither_of_them_let_move(
    seed: int, bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    office = Office(bench, tmp_path, capsys, Random(seed))
    random, before = Random(seed), held()
    with bench.enforcing() as daemon:
        for number in range(_ORDERS):
            before = before if number > _WARM else held()
            office.said.clear()
            office.violate_a_rule()
            for _ in range(random.randint(1, MOST_WORDS)):
                office.speak()
                office.pass_time(daemon, random.choice([0.5, 3.0, 30.0, 120.0]))
            office.settle(daemon)
        assert all(now <= then + _SPARE for now, then in zip(held(), before, strict=True))
    assert office.migrated > _ORDERS / 2
