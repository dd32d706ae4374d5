"""What others notice of hostile neighbours: a person who is logged in, the engine's calls, the enforcer.

Each witness is a process of its own, for whom none of the others holds up its interpreter.
"""

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple
from xmlrpc.client import Error as XmlFault
from xmlrpc.client import ServerProxy

import requests

from tests.kit.hostile import processors
from tests.kit.hostile.site import COOKIE, ROOT, Site
from tests.processes import PROCESSES, acting

#: A person's answer comes within this, the proxy's within this beyond its time alone, all in seconds.
PERSON_SECONDS, BEYOND_SECONDS = 1.0, 0.05
#: So soon all is as before when neighbours have gone, and so long the enforcer may take for a cycle.
RECOVERY_SECONDS, CYCLE_SECONDS = 10.0, 15.0
#: Clients give up then.
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.02
#: Of each hundred calls as many count: the machine of a test has others to serve.
_SHARE = 0.95
_UNITS = ["AffinityFilter", "HostAffinityFilter", "PlacementKeyFilter"]


class Person(NamedTuple):
    """Who is logged in, and sees this cluster at this address."""

    page: str
    cookie: str
    cluster: str
    verified: str | bool


class Call(NamedTuple):
    """A call that the engine makes about the migration of a VM, and its right answer."""

    proxy: str
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
        proxy = site.proxy
        self.calls = [Call(proxy, vm, there, _asked(proxy, vm, there)) for vm, there in hosts.items()]
        assert any(len(call.answer["result"]) < len(call.hosts) for call in self.calls)
        self._person = Person(
            f"{site.page.partition(ROOT)[0]}{ROOT}/", site.person, site.state.clusters[0].name, site.verified
        )
        self.alone = 0.0

    def measure_alone(self, seconds: float) -> Noticed:
        """What a person and the engine notice of each other; that of the person."""
        with self.asking() as (person, engine):
            threading.Event().wait(seconds)
        assert not person.faults + engine.faults, person.faults + engine.faults
        self.alone = engine.usual()
        return person

    @contextmanager
    def asking(self) -> Iterator[tuple[Noticed, Noticed]]:
        """Be a person and the engine; complete once the block has ended."""
        noticed = Noticed(), Noticed()
        with ExitStack() as asking:
            ends = [
                asking.enter_context(_process(_be_witness, *one, self._site.groups))
                for one in ((_view, [self._person]), (_decide, self.calls))
            ]
            for one in ends:
                one.recv()  # it has begun
            yield noticed
            for one in ends:
                one.send(None)
            for each, end in zip(noticed, ends, strict=True):
                found: Noticed = end.recv()
                each.seconds, each.faults = found.seconds, found.faults

    def complaints(self, person: Noticed, engine: Noticed) -> list[str]:
        """What is not as it is to be."""
        found = [*person.faults[:3], *engine.faults[:3]]
        if person.longest() > PERSON_SECONDS:
            found.append(f"a person waited {person.longest():.2f} s")
        if engine.usual() > self.alone + BEYOND_SECONDS:
            found.append(f"calls of the engine took {engine.usual():.3f} s, alone {self.alone:.3f} s")
        if not person.seconds or not engine.seconds:
            found.append("nobody was answered")
        return found

    def cycles(self, *results: str) -> float:
        return self._site.cycles(*results)


def _view(person: Person) -> str | None:
    answer = requests.get(
        person.page,
        headers={"Cookie": f"{COOKIE}={person.cookie}"},
        allow_redirects=False,
        verify=person.verified,
        timeout=_PATIENCE_SECONDS,
    )
    shown = answer.status_code == 200 and person.cluster in answer.text
    return None if shown else f"page: {answer.status_code}"


def _asked(proxy: str, vm: str, hosts: list[str]) -> Any:
    with ServerProxy(f"{proxy}/", allow_none=True) as served:
        return served.runFilters(_UNITS, hosts, vm, {})


def _decide(call: Call) -> str | None:
    answer = _asked(call.proxy, call.vm, call.hosts)
    return None if answer == call.answer else f"proxy: {call.vm}: {str(answer)[:300]}"


@contextmanager
def _process(target: Callable[..., None], *arguments: object) -> Iterator[Connection]:
    """A process that has the other end of a pipe."""
    end, theirs = PROCESSES.Pipe()
    with acting(target, theirs, *arguments):
        yield end


def _be_witness(
    end: Connection, ask: Callable[[Any], str | None], questions: Sequence[Any], groups: Path | None
) -> None:
    """Be a process that asks these in turn until it is sent a word, and then sends what it has noticed."""
    processors.join(groups, ask.__name__.strip("_"))
    end.send("begun")
    noticed = Noticed()
    for question in itertools.cycle(questions):
        began = time.monotonic()
        try:
            fault = ask(question)
        except (OSError, requests.RequestException, XmlFault) as error:
            fault = f"{type(error).__name__}: {error}"
        noticed.seconds.append(time.monotonic() - began)
        if fault is not None:
            noticed.faults.append(fault)
        if end.poll(_PAUSE_SECONDS):
            end.send(noticed)
            return
