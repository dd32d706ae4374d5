"""The answers that views show, each computed once for all who ask the same of the same state."""

import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, TypeVar

import msgspec

from ovirt_placement.answers.configured import Domains, configured_domains
from ovirt_placement.answers.decisions import LastDecisionsDocument, last_decisions
from ovirt_placement.answers.decisions.at_time import DecisionsAtDocument, decisions_at, refusals
from ovirt_placement.answers.doctor.examination import DoctorDocument, doctor
from ovirt_placement.answers.document import Document, dated
from ovirt_placement.answers.keys import compiled
from ovirt_placement.answers.placement import WhyDocument, why
from ovirt_placement.answers.plans.text import leads_to
from ovirt_placement.answers.plans.what_if import WhatIfDocument, starts_after
from ovirt_placement.answers.proxy import ask_local_proxy, record_of
from ovirt_placement.answers.question import (
    CLUSTERS,
    AuthoredState,
    ConfiguredState,
    Parameter,
    Question,
    Reads,
    Route,
    question,
    question_named,
)
from ovirt_placement.answers.status.ha_check import HaCheckDocument
from ovirt_placement.answers.status.ha_report import PAGE_STEPS, check_ha
from ovirt_placement.answers.status.health import HealthState, StatusDocument, with_machine
from ovirt_placement.answers.violations import violations
from ovirt_placement.config import Config, reread
from ovirt_placement.engine.events import LatestEvents
from ovirt_placement.model import Cluster, Host, Vm
from ovirt_placement.model.record import Record
from ovirt_placement.store.keys import KeyStore
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.state.map import MapChangesDocument, MapDocument, cluster_map, map_changes, whole
from ovirt_placement_web.state.sources import Past, View
from ovirt_service.errors import UserError

#: What hangs on more than the state, the store and the proxy say, is asked again after so long.
_BRIEF_SECONDS = 2.0
#: The engine's events are read no more often than this, however many people ask for them.
_EVENTS_SECONDS = 30.0
#: A page that missed more states than this reads the whole map: in a window that was hidden, say.
_MOST_MAPS = 4
_MOST_ANSWERS = 500

_Answer = TypeVar("_Answer")


class Remembered:
    """Answers of one state; of the same question one thread computes, and the others wait for it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._number = -1
        self._answers: dict[Hashable, _Entry] = {}

    def ask(
        self, number: int, question: Hashable, make: Callable[[], _Answer], seconds: float = math.inf
    ) -> _Answer:
        """The answer of the state with this number, no older than this many seconds."""
        with self._lock:
            if number != self._number or len(self._answers) > _MOST_ANSWERS:
                self._number, self._answers = number, {}
            entry = self._answers.setdefault(question, _Entry())
        with entry.lock:
            if time.monotonic() > entry.until:
                entry.answer = make()
                entry.until = time.monotonic() + seconds
            answer: _Answer = entry.answer
            return answer


@dataclass
class _Entry:
    lock: Lock = field(default_factory=Lock)
    #: A moment of `time.monotonic`.
    until: float = -math.inf
    answer: Any = None


class Memory:
    def __init__(self) -> None:
        self.answers, self.said = Remembered(), Remembered()
        #: The latest maps of each cluster, which pages still show.
        self.maps: dict[str, deque[MapDocument]] = {}
        #: The last examination, and when it was made, in seconds since the epoch.
        self.examined: tuple[DoctorDocument, float] | None = None
        self._examining = Lock()

    def examine(self, config: Config) -> None:
        """Examine all again, once for all who ask meanwhile."""
        if self._examining.acquire(blocking=False):
            try:
                self.examined = doctor(reread(config)), time.time()
            finally:
                self._examining.release()


_THE_CLUSTER = Parameter(names=CLUSTERS, positional=True)


@dataclass(frozen=True)
class Questions:
    """Asks the library about a view; each method raises `UserError` with what is not known."""

    config: Config
    past: Past
    memory: Memory
    view: View
    #: The proxy's of its decisions, where its configuration on this machine does not say.
    record: Path | None = None

    def answer(self, asked: Question, words: Mapping[str, Any], arguments: Mapping[str, Any]) -> Record:
        """Raises `UserError`, and `Refusal` where nothing has been examined yet."""
        if asked.reads is Reads.CONFIGURATION:
            if self.memory.examined is None:
                raise Refusal(404, "nothing has been examined yet: ask for it on the page")
            return self.memory.examined[0]
        if asked.reads is Reads.OWN:
            return asked.ask(self, **arguments)
        key = asked.name, *sorted((name, word) for name, word in words.items() if word is not None)
        seconds = _BRIEF_SECONDS if asked.reads in (Reads.HEALTH, Reads.KEYS) else math.inf
        return self.once(key, lambda: asked.ask(self._state(asked.reads), **arguments), seconds)

    def _state(self, reads: Reads) -> Any:
        match reads:
            case Reads.HEALTH:
                return self._health()
            case Reads.KEYS:
                every = self.past.read(KeyStore, KeyStore.all_keys)
                return AuthoredState(self.view.snapshot, {one.key.place: one for one in every})
            case Reads.RULES:
                return AuthoredState(self.view.snapshot, {})
            case Reads.CONFIGURED:
                return ConfiguredState(self.view.snapshot, lambda: self.config)
        return self.view.snapshot

    def _health(self) -> HealthState:
        try:
            return with_machine(self.view.parts, reread(self.config), self.past.enforcement)
        except UserError as error:
            proxy = ask_local_proxy(self.config.engine.name)
            return msgspec.structs.replace(self.view.parts, mistakes=(str(error),), proxy=proxy)

    def ask(self, name: str, **words: str | None) -> Any:
        """What is answered to the question of this name, with words that name what it is about."""
        asked = question_named(name)
        return self.answer(asked, words, asked.arguments(words, self.view.snapshot))

    def status(self) -> StatusDocument:
        found: StatusDocument = self.ask("status")
        return found

    def why(self, vm: Vm) -> WhyDocument:
        hosts = self.view.snapshot.hosts_of_cluster.get(vm.cluster, ())
        return self.once(("why of all", vm.id), lambda: why(self.view.snapshot, vm, hosts))

    def keys_of(self, one: Vm | Host) -> Any:
        return self.once(("keys", one.id), lambda: compiled.shown_keys(self.view.snapshot, one))

    @question(
        "map",
        "hosts, VMs and groups of a cluster as they are drawn",
        reads=Reads.OWN,
        routes=(Route("/clusters/{name}/map"),),
    )
    def map(self, cluster: Annotated[Cluster, _THE_CLUSTER]) -> MapDocument:

        def ask() -> MapDocument:
            violated = self.ask("violations", clusters=cluster.id)
            drawn = cluster_map(self.view.snapshot, cluster, violated, self.view.number, self._domains())
            self.memory.maps.setdefault(cluster.id, deque(maxlen=_MOST_MAPS)).append(drawn)
            return drawn

        return self.once(("map", cluster.id), ask)

    def _domains(self) -> Mapping[str, str]:
        """The failure domains of hosts as they are configured; else the tags that name a rack."""
        known: Domains = ()
        with suppress(UserError):
            tagged = msgspec.structs.replace(self.config.ha, domains=(), domain_tags=("rack",))
            known = configured_domains(self.view.snapshot, self.config.ha) or configured_domains(
                self.view.snapshot, tagged
            )
        return {host: one.name or "" for one in reversed(known) for host in one.hosts}

    @question(
        "map changes",
        "what has changed on the map of a cluster since one that was asked for a short time ago",
        reads=Reads.OWN,
        routes=(Route("/clusters/{name}/map/changes", keys=("since",), required=("since",)),),
    )
    def map_changes(
        self,
        cluster: Annotated[Cluster, _THE_CLUSTER],
        since: Annotated[int, Parameter(help="the number of that map")],
    ) -> MapChangesDocument:

        def ask() -> MapChangesDocument:
            now, known = self.map(cluster), tuple(self.memory.maps[cluster.id])
            before = next((one for one in known if one.number == since), None)
            return whole(now, since) if before is None else map_changes(before, now)

        return self.once(("map since", cluster.id, since), ask)

    def map_after(self, cluster: Cluster, plan: Mapping[str, Any], done: frozenset[int]) -> MapDocument | str:
        """A cluster once the steps of a plan that are not done are; or why they do not fit it any more."""

        def ask() -> MapDocument | str:
            end = leads_to(self.view.snapshot, plan, done)
            if isinstance(end, str):
                return end
            return cluster_map(end, cluster, violations(end, (cluster,)), self.view.number, {})

        return self.once(("after", plan.get("id"), done), ask)

    def ha_check(self, cluster: Cluster, hosts: Sequence[Host] = ()) -> HaCheckDocument:
        """Whether every failure of a cluster is survived, or the one of all these hosts together."""
        key, state = ("ha", cluster.id, *(host.id for host in hosts)), self._state(Reads.CONFIGURED)
        return self.once(key, lambda: check_ha(state, cluster=cluster, hosts=hosts, steps=PAGE_STEPS))

    def starts(self, hosts: Iterable[str]) -> WhatIfDocument:
        """Where each VM would start if these hosts failed, in the order of the starts."""
        down = tuple(sorted(hosts))
        return self.once(("starts", down), lambda: starts_after(self.view.snapshot, down))

    @property
    def _record(self) -> Path:
        return self.record or record_of(self.config.engine.name)

    def last_decisions(self, vm: Vm) -> LastDecisionsDocument:
        """What the proxy answered last about a VM. Raises `NoRecord` where its record cannot be read."""
        ask = partial(last_decisions, self.view.snapshot, vm)
        return self.once(("last", vm.id), lambda: ask(self._record), _BRIEF_SECONDS)

    def decisions_at(self, vm: Vm, moment: float) -> DecisionsAtDocument:
        """What the proxy answered next to a moment. Raises `NoRecord` where its record cannot be read."""
        record, read = self._record, partial(refusals, self._state(Reads.CONFIGURED))
        events, error = LatestEvents((), None), self.view.error
        if error is None:
            events, error = self.memory.said.ask(0, "refusals", read, _EVENTS_SECONDS)
        return decisions_at(self.view.snapshot, vm, record, moment, events, error)

    def once(self, question: Hashable, make: Callable[[], _Answer], seconds: float = math.inf) -> _Answer:
        """What is made of a state once for all who ask, at most that many seconds ago, with its age."""
        answer = self.memory.answers.ask(self.view.number, question, make, seconds)
        if self.view.error is None or not isinstance(answer, Document):
            return answer
        return dated(answer, self.view.age_seconds)
