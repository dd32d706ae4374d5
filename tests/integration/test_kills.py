"""Inventory, proxy, workers and engine are killed, alone and together, at random moments while VMs start.

No lawful start is refused, no unit disabled. For how long hard rules are off a question measures that has one
right answer.
"""

import contextlib
import random
import threading
import time
import xmlrpc.client
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

import psutil
import pytest
from msgspec.structs import replace

from ovirt_placement.model import Snapshot
from tests import builders as build
from tests.examples import examples
from tests.integration.storms import INVENTORY, Stage, draw, start_all, with_ours
from tests.integration.world import ENGINE, PROXY
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
NIGHTLY = (pytest.mark.nightly, pytest.mark.timeout(4 * 3600))


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
    #: The parts that were killed last.
    killed: str = ""


class Probe:
    """Asks the proxy again and again what is never to be answered otherwise."""

    def __init__(self, stage: Stage, figures: Figures, state: Snapshot) -> None:
        self._url, self._figures = stage.proxy_url, figures
        self._hosts = [host.id for host in state.hosts]
        self._wrong = state.vm_by_id[_PEER].host
        self._off_since: float | None = None

    def ask(self) -> None:
        began = time.monotonic()
        if not self._holds():
            self._off_since = self._off_since or began
        elif self._off_since is not None:
            self._figures.off.append((began - self._off_since, self._figures.killed))
            self._off_since = None

    def _holds(self) -> bool:
        try:
            with xmlrpc.client.ServerProxy(self._url) as proxy:
                answer = proxy.runFilters(["AffinityFilter"], self._hosts, _WATCHED, {})
        except (OSError, xmlrpc.client.Error):
            return False
        return isinstance(answer, dict) and self._wrong not in answer["result"]


@pytest.mark.system
@pytest.mark.parametrize("kills", [4, pytest.param(examples(3400), marks=NIGHTLY)])
def test_kills_refuse_no_start_and_disable_no_unit(kills: int, tmp_path: Path) -> None:
    figures, dice, storm = Figures(), random.Random(1), draw(_STARTS, 1)
    state = with_watched(storm.state)
    with (
        with_ours(tmp_path, state, threads=_THREADS, time_scale=_TIME_SCALE) as stage,
        repeating(Probe(stage, figures, state).ask, every=_PROBE_SECONDS),
    ):
        while figures.kills.total() < kills:
            with ThreadPoolExecutor(1) as thread:
                starts = thread.submit(lambda: [start(stage, vm, figures) for vm in storm.starts])
                while not starts.done():
                    wait((starts,), dice.uniform(0.0, _LONGEST_PAUSE_SECONDS))
                    kill(stage, dice, figures)
                starts.result()
            figures.violated += storm.violated(stage.hosts())
            policy = stage.state().clusters[0].scheduling_policy
            figures.disabled.update(policy.disabled if policy else ())
            stage.processes.kill(ENGINE)
            stage.restart_engine(state)
    print(figures)
    assert (figures.refused, figures.violated, figures.disabled) == ([], 0, set())
    assert figures.starts >= 1
    assert figures.off or figures.kills.keys() <= {WORKER, INVENTORY, ENGINE}


def with_watched(state: Snapshot) -> Snapshot:
    more = build.snapshot(
        build.vm(_WATCHED),
        build.vm(_PEER, state.hosts[0].id),
        build.group("watch", build.APART, f"{_WATCHED} {_PEER}"),
    )
    groups = (*state.affinity_groups, *more.affinity_groups)
    return replace(state, vms=(*state.vms, *more.vms), affinity_groups=groups)


def kill(stage: Stage, dice: random.Random, figures: Figures) -> None:
    """Kill one part or several at once; the proxy comes back before an engine that asks it."""
    parts = dice.sample(PARTS, dice.choice((1, 1, 1, 2, 3, 4)))
    saved = stage.state() if ENGINE in parts else None
    figures.killed = " and ".join(sorted(parts))
    for part in parts:
        if part != WORKER:
            stage.processes.kill(part)
        elif PROXY not in parts:
            kill_worker(dice)
        figures.kills[part] += 1
    threading.Event().wait(dice.uniform(0.0, _LONGEST_AWAY_SECONDS))
    if PROXY in parts:
        stage.processes.restart(PROXY)
    if saved is not None:
        stage.restart_engine(saved)
    if INVENTORY in parts:  # one that starts says that it is ready when it has read the engine
        stage.processes.restart(INVENTORY)


def kill_worker(dice: random.Random) -> None:
    with contextlib.suppress(psutil.NoSuchProcess, IndexError):
        ours = psutil.Process().children()
        zygotes = [one for proxy in ours if PROXY in " ".join(proxy.cmdline()) for one in proxy.children()]
        dice.choice([worker for zygote in zygotes for worker in zygote.children()]).kill()


def start(stage: Stage, vm: str, figures: Figures) -> None:
    """Start a VM; who gets no answer asks again."""
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
