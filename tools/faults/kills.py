"""Kills inventory, proxy, workers and engine, alone and together, at random moments while VMs start.

`python -m tools.faults.kills NUMBER [SEED]` prints what came of it. No lawful start may be refused, no unit
be disabled. For how long hard rules are off a question measures that has one right answer.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import tempfile
import threading
import time
import xmlrpc.client
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import psutil
from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from tests import builders as build
from tests.integration.storms.clients import start_all
from tests.integration.storms.cluster import Storm, draw
from tests.integration.storms.stage import ENGINE, INVENTORY, PROXY, Stage, with_ours
from tests.repeating import repeating

WORKER = "worker"
PARTS = (INVENTORY, PROXY, WORKER, ENGINE)
#: VMs that start in one round; after it the engine comes back with none of them.
_STARTS = 24
_THREADS = 8
_TIME_SCALE = 20.0
#: A start whose answer is lost is asked for again, for so long.
_PATIENCE_SECONDS = 30.0
_PROBE_SECONDS = 0.05
#: At most so long after a kill comes the next one, and at most so long a part is away.
_LONGEST_PAUSE_SECONDS, _LONGEST_AWAY_SECONDS = 1.0, 0.3
#: The filter must keep the first of these, which is down, off the host of the second.
_WATCHED, _PEER = "watched", "peer"


@dataclass
class Figures:
    """What came of the kills so far."""

    kills: Counter[str] = field(default_factory=Counter)
    starts: int = 0
    refused: list[str] = field(default_factory=list)
    violated: int = 0
    disabled: set[str] = field(default_factory=set)
    #: For how many seconds hard rules were off, each with the parts that were killed last.
    off: list[tuple[float, str]] = field(default_factory=list)

    def __str__(self) -> str:
        longest, after = max(self.off, default=(0.0, "no kill"))
        kills = ", ".join(f"{part} {count}" for part, count in sorted(self.kills.items()))
        return (
            f"{self.kills.total()} kills ({kills}), {self.starts} starts, {len(self.refused)} refused,"
            f" {self.violated} hard rules violated, disabled: {sorted(self.disabled) or 'none'};"
            f" hard rules off {len(self.off)} times, longest {longest:.2f} s after {after}"
        )


class _Probe:
    """Asks the proxy again and again what is never to be answered otherwise."""

    def __init__(self, stage: Stage, figures: Figures, state: Snapshot) -> None:
        self._url, self._figures = stage.proxy_url, figures
        self._hosts = [host.id for host in state.hosts]
        self._wrong = state.vm_by_id[_PEER].host
        self._off_since: float | None = None
        #: The parts that were killed last.
        self.killed = ""

    def ask(self) -> None:
        """Ask once."""
        began = time.monotonic()
        if self._holds():
            if self._off_since is not None:
                self._figures.off.append((began - self._off_since, self.killed))
            self._off_since = None
        elif self._off_since is None:
            self._off_since = began

    def _holds(self) -> bool:
        try:
            with xmlrpc.client.ServerProxy(self._url) as proxy:
                answer = proxy.runFilters(["AffinityFilter"], self._hosts, _WATCHED, {})
        except (OSError, xmlrpc.client.Error):
            return False
        return isinstance(answer, dict) and self._wrong not in answer["result"]


def run(
    number: int, seed: int = 1, after_round: Callable[[Figures], object] = lambda figures: None
) -> Figures:
    """Kill this many times at least, round by round, and give the figures."""
    figures, dice = Figures(), random.Random(seed)
    storm = draw(_STARTS, seed)
    state = _with_watched(storm.state)
    with (
        tempfile.TemporaryDirectory() as folder,
        with_ours(Path(folder), state, threads=_THREADS, time_scale=_TIME_SCALE) as stage,
    ):
        probe = _Probe(stage, figures, state)
        with repeating(probe.ask, every=_PROBE_SECONDS):
            while figures.kills.total() < number:
                with _starting(stage, storm, figures) as starts:
                    while starts.is_alive():
                        starts.join(dice.uniform(0.0, _LONGEST_PAUSE_SECONDS))
                        _kill(stage, _drawn(dice), dice, figures, probe)
                _judge(stage, storm, figures)
                stage.kill(ENGINE)
                stage.restart_engine(state)
                after_round(figures)
    return figures


def _with_watched(state: Snapshot) -> Snapshot:
    host = state.hosts[0].id
    watched = build.snapshot(
        build.vm(_WATCHED), build.vm(_PEER, host), build.group("watch", build.APART, f"{_WATCHED} {_PEER}")
    )
    return replace(
        state,
        vms=(*state.vms, *watched.vms),
        affinity_groups=(*state.affinity_groups, *watched.affinity_groups),
    )


def _drawn(dice: random.Random) -> tuple[str, ...]:
    """One part, or several."""
    return tuple(dice.sample(PARTS, dice.choice((1, 1, 1, 2, 3, 4))))


def _kill(stage: Stage, parts: tuple[str, ...], dice: random.Random, figures: Figures, probe: _Probe) -> None:
    """Kill these at once; they come back one after the other, the proxy before an engine that asks it."""
    saved = stage.state() if ENGINE in parts else None
    probe.killed = " and ".join(sorted(parts))
    for part in parts:
        if part != WORKER:
            stage.kill(part)
        elif PROXY not in parts:
            _kill_worker(stage, dice)
        figures.kills[part] += 1
    threading.Event().wait(dice.uniform(0.0, _LONGEST_AWAY_SECONDS))
    if PROXY in parts:
        stage.start(PROXY)
    if saved is not None:
        stage.restart_engine(saved)
    if INVENTORY in parts:  # one that starts says that it is ready when it has read the engine
        stage.start(INVENTORY)


def _kill_worker(stage: Stage, dice: random.Random) -> None:
    with contextlib.suppress(psutil.NoSuchProcess, IndexError):
        zygotes = psutil.Process(stage.process_id(PROXY)).children()
        dice.choice([worker for zygote in zygotes for worker in zygote.children()]).kill()


@contextlib.contextmanager
def _starting(stage: Stage, storm: Storm, figures: Figures) -> Iterator[threading.Thread]:
    """Start the VMs one after the other; who gets no answer asks again."""
    failures: list[Exception] = []

    def start() -> None:
        try:
            for vm in storm.starts:
                _start(stage, vm, figures)
        except Exception as failure:
            failures.append(failure)

    thread = threading.Thread(target=start)
    thread.start()
    yield thread
    thread.join()
    if failures:
        raise failures[0]


def _start(stage: Stage, vm: str, figures: Figures) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        (answer,) = start_all(stage.url, stage.token, [vm], patience=_PATIENCE_SECONDS).answers
        if answer.status == HTTPStatus.OK:
            figures.starts += 1
            return
        with contextlib.suppress(OSError):  # else it has started, and only the answer was lost
            if answer.status == HTTPStatus.CONFLICT and stage.hosts()[vm] is None:
                figures.refused.append(f"{vm}: {answer.body}")
                return
        threading.Event().wait(_PROBE_SECONDS)


def _judge(stage: Stage, storm: Storm, figures: Figures) -> None:
    figures.violated += storm.violated(stage.hosts())
    policy = stage.state().clusters[0].scheduling_policy
    figures.disabled.update(policy.disabled if policy else ())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.faults.kills", description=__doc__)
    parser.add_argument("number", type=int)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    arguments = parser.parse_args()
    figures = run(arguments.number, arguments.seed, lambda figures: print(figures, flush=True))
    print(*figures.refused, sep="\n")
    for seconds, parts in sorted(figures.off, reverse=True)[:10]:
        print(f"off {seconds:.2f} s after {parts}")


if __name__ == "__main__":
    main()
