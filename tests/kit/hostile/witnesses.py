"""What others notice of hostile neighbours: a person who is logged in, the engine's calls, the enforcer."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any, NamedTuple
from xmlrpc.client import ServerProxy

import requests

from tests.kit.hostile.site import COOKIE, PRIORITY, ROOT, Site
from tests.processes import PROCESSES

#: A person's answer comes within this, the proxy's within this beyond its time alone, all in seconds.
PERSON_SECONDS, BEYOND_SECONDS = 1.0, 0.05
#: An answer waits so often for a processor that others have: the engine's passes the proxy, its workers and
#: the inventory, each to and fro.
_TURNS = 6
#: So soon all is as before when neighbours have gone, and so long the enforcer may take for a cycle.
RECOVERY_SECONDS, CYCLE_SECONDS = 10.0, 15.0
#: Clients give up then.
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.02
#: Of each hundred calls as many count: the machine of a test has others to serve.
_SHARE = 0.95
#: What the machine is asked again and again, in seconds of a processor.
_TURN_SECONDS = 0.002
_UNITS = ["AffinityFilter", "HostAffinityFilter", "PlacementKeyFilter"]


class Call(NamedTuple):
    """A call that the engine makes about the migration of a VM, and its right answer."""

    vm: str
    hosts: list[str]
    answer: Any


@dataclass
class Noticed:
    """What came of asking for a while."""

    seconds: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def usual(self) -> float:
        """The time of all but the slowest few."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(_SHARE * len(ordered)))] if ordered else 0.0

    def longest(self) -> float:
        return max(self.seconds, default=0.0)


class Witnesses:
    """They ask while a block is carried out; `alone` is what the engine's calls take by themselves."""

    def __init__(self, site: Site) -> None:
        self._site = site
        names = {vm.id: vm for vm in site.state.vms}
        grouped = {vm for group in site.state.affinity_groups for vm in group.vms}
        moved = [names[vm] for vm in sorted(grouped) if names[vm].host is not None][:8]
        everywhere = [host.id for host in site.state.hosts]
        hosts = {vm.id: [host for host in everywhere if host != vm.host] for vm in moved}
        self.calls = [Call(vm, there, self._call(vm, there)) for vm, there in hosts.items()]
        assert any(len(call.answer["result"]) < len(call.hosts) for call in self.calls)
        self.alone = self.turn_alone = 0.0

    def measure_alone(self, seconds: float) -> Noticed:
        """What a person and the engine notice of each other; that of the person."""
        self._site.hurry()
        with self.asking() as (person, engine, machine):
            threading.Event().wait(seconds)
        assert not person.faults + engine.faults, person.faults + engine.faults
        self.alone, self.turn_alone = engine.usual(), machine.usual()
        return person

    @contextmanager
    def asking(self) -> Iterator[tuple[Noticed, Noticed, Noticed]]:
        """Be a person, the engine, and who needs a processor alone; complete once the block has ended."""
        over = threading.Event()
        person, engine, machine = Noticed(), Noticed(), Noticed()
        answer, theirs = PROCESSES.Pipe()
        idle = PROCESSES.Process(target=_be_idle, args=(theirs,), daemon=True)
        idle.start()
        threads = [
            threading.Thread(target=_again, args=(over, person, [self._view])),
            threading.Thread(
                target=_again,
                args=(over, engine, [lambda call=call: self._decide(call) for call in self.calls]),
            ),
        ]
        for thread in threads:
            thread.start()
        try:
            yield person, engine, machine
        finally:
            over.set()
            for thread in threads:
                thread.join()
            answer.send(None)
            machine.seconds.extend(answer.recv())
            idle.join()

    def complaints(self, person: Noticed, engine: Noticed, machine: Noticed) -> list[str]:
        """What is not as it is to be, but for what all wait for a processor that others have."""
        waited = _TURNS * max(0.0, machine.usual() - self.turn_alone)
        found = [*person.faults[:3], *engine.faults[:3]]
        if person.longest() > PERSON_SECONDS + waited:
            found.append(f"a person waited {person.longest():.2f} s")
        if engine.usual() > self.alone + BEYOND_SECONDS + waited:
            found.append(f"calls of the engine took {engine.usual():.3f} s, alone {self.alone:.3f} s")
        if not person.seconds or not engine.seconds:
            found.append("nobody was answered")
        return found

    def cycles(self, *results: str) -> float:
        return self._site.cycles(*results)

    def _view(self) -> str | None:
        answer = requests.get(
            f"{self._site.page.partition(ROOT)[0]}{ROOT}/",
            headers={"Cookie": f"{COOKIE}={self._site.person}"},
            allow_redirects=False,
            verify=self._site.verified,
            timeout=_PATIENCE_SECONDS,
        )
        cluster = self._site.state.clusters[0].name
        return None if answer.status_code == 200 and cluster in answer.text else f"page: {answer.status_code}"

    def _call(self, vm: str, hosts: list[str]) -> Any:
        with ServerProxy(f"{self._site.proxy}/", allow_none=True) as proxy:
            return proxy.runFilters(_UNITS, hosts, vm, {})

    def _decide(self, call: Call) -> str | None:
        answer = self._call(call.vm, call.hosts)
        return None if answer == call.answer else f"proxy: {call.vm}: {str(answer)[:300]}"


def _be_idle(asked: Connection) -> None:
    """Be one who needs a processor for a moment, now and then; send in the end how long that took."""
    os.setpriority(os.PRIO_PROCESS, 0, PRIORITY if os.geteuid() == 0 else 0)
    took = []
    while not asked.poll(_PAUSE_SECONDS):
        began, needed = time.monotonic(), time.thread_time() + _TURN_SECONDS
        while time.thread_time() < needed:
            pass
        took.append(time.monotonic() - began)
    asked.send(took)


def _again(over: threading.Event, noticed: Noticed, questions: Sequence[Callable[[], str | None]]) -> None:
    while not over.is_set():
        for question in questions:
            began = time.monotonic()
            try:
                fault = question()
            except (OSError, requests.RequestException) as error:
                fault = f"{type(error).__name__}: {error}"
            noticed.seconds.append(time.monotonic() - began)
            if fault is not None:
                noticed.faults.append(fault)
            over.wait(_PAUSE_SECONDS)
