"""Asks the units that a call names and puts their outcomes together; cuts off one that keeps failing."""

import asyncio
import time
from array import array
from collections import deque
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any

import msgspec

from ovirt_scheduler_proxy import xmlrpc as writing
from ovirt_scheduler_proxy.plugins import Plugins, Unit
from ovirt_scheduler_proxy.pool import Job
from ovirt_scheduler_proxy.processes import Cause, Failure, Outcome, failed
from ovirt_scheduler_proxy.worker.contract import UnitKind, is_vm_id
from ovirt_scheduler_proxy.worker.kernel import pack
from ovirt_scheduler_proxy.xmlrpc import Question
from ovirt_service.files import digest
from ovirt_service.repetition import Said

#: This many overruns, or crashes, within `WINDOW_SECONDS` open the breaker.
OVERRUNS = 3
CRASHES = 5
WINDOW_SECONDS = 60.0

#: After so long one call is let through, to try whether the unit is well again.
OPEN_SECONDS = 30.0

_CRASHES = frozenset({Cause.CRASHED, Cause.EXITED, Cause.MEMORY})
#: What takes a call's whole deadline.
_OVERRUNS = frozenset({Cause.OVERRAN, Cause.NOT_STARTED})


class _Breaker:
    """The breaker of one unit: closed, open, or half-open while one call tries."""

    def __init__(self) -> None:
        self.overruns: deque[float] = deque(maxlen=OVERRUNS)
        self.crashes: deque[float] = deque(maxlen=CRASHES)
        self.opened_at: float | None = None
        self.trying = False

    def fail(self, times: deque[float], now: float) -> None:
        times.append(now)
        often = len(times) == times.maxlen and now - times[0] <= WINDOW_SECONDS
        if often or self.trying:
            self.opened_at = now
        self.trying = False


class Breakers:
    """The breakers of all units, distinguished by a key."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._breakers: dict[str, _Breaker] = {}

    def admit(self, key: str, ready: bool = True) -> bool:
        """Whether the unit may be asked. When half-open, the first who asks may and all others may not.

        Where no worker is `ready`, a unit that was cut off stays so: trying would take a whole deadline.
        """
        breaker = self._breakers.get(key)
        if breaker is None or breaker.opened_at is None:
            return True
        if not ready or breaker.trying or self._clock() - breaker.opened_at < OPEN_SECONDS:
            return False
        breaker.trying = True
        return True

    def record(self, key: str, cause: Cause | None) -> None:
        """Note how a call that was admitted ended: with a failure, or well (None)."""
        if cause in _OVERRUNS or cause in _CRASHES:
            breaker = self._breakers.setdefault(key, _Breaker())
            breaker.fail(breaker.overruns if cause in _OVERRUNS else breaker.crashes, self._clock())
        elif key in self._breakers and self._breakers[key].trying:
            if cause is Cause.NO_WORKER:
                self._breakers[key].trying = False  # it was never asked: nothing is known
            else:
                del self._breakers[key]  # it answered, be it with a failure of another kind: it is back

    def open_keys(self) -> list[str]:
        """The units that are cut off, or on trial."""
        return sorted(key for key, breaker in self._breakers.items() if breaker.opened_at is not None)


class Asked(msgspec.Struct, frozen=True):
    """One unit that a call has asked, and what came of it."""

    unit: str
    outcome: Outcome


class Answer(msgspec.Struct, frozen=True):
    """An answer with its story: `result` is for the engine, `plugin_errors` for the administrator."""

    question: Question
    asked: list[Asked]
    result: Any
    plugin_errors: dict[str, list[str]]
    #: How many hosts are left, for the log.
    hosts_out: int

    @property
    def balance(self) -> list[Any] | None:
        """The VM to move and where to, where that was asked."""
        return self.result if self.question.kind is UnitKind.BALANCE else None

    def weights(self) -> dict[str, list[int]]:
        """The weights of each unit that scored, in the order of the hosts."""
        if self.question.kind is not UnitKind.SCORE:
            return {}
        scored = [asked for asked in self.asked if asked.outcome.failure is None]
        return {asked.unit: array("i", asked.outcome.body).tolist() for asked in scored}

    @property
    def result_code(self) -> int:
        """0 when every unit could be heard, else 1."""
        return int(any(asked.outcome.failure is not None for asked in self.asked))


_decode_balance = msgspec.json.Decoder(tuple[str, list[str]]).decode

#: Whether the failure of the unit of this name rejects every host.
Rejects = Callable[[str], bool]


def merge_filters(asked: Sequence[Asked], hosts: list[str], rejects: Rejects) -> list[str]:
    """The hosts that every unit accepts, in the order they were asked.

    A unit that failed accepts all of them; none if it refuses the VM, or if `rejects` says so.
    """
    kept = hosts
    masks = [item.outcome.body for item in asked if item.outcome.failure is None]
    if any(rejects_all(item, rejects) for item in asked):
        return []
    if len(masks) == 1:
        return list(compress(hosts, masks[0]))
    if masks:
        kept = [host for host, votes in zip(hosts, zip(*masks, strict=True), strict=True) if all(votes)]
    return kept


def fallen_hosts(asked: Sequence[Asked], hosts: list[str], rejects: Rejects) -> dict[str, list[str]]:
    """For each host that fell, the units that dropped it."""
    fallen: dict[str, list[str]] = {}
    for item in asked:
        if item.outcome.failure is not None:
            dropped = hosts if rejects_all(item, rejects) else []
        else:
            dropped = [host for host, accepted in zip(hosts, item.outcome.body, strict=True) if not accepted]
        for host in dropped:
            fallen.setdefault(host, []).append(item.unit)
    return fallen


def rejects_all(item: Asked, rejects: Rejects) -> bool:
    """Whether a filter without an answer leaves no host."""
    failure = item.outcome.failure
    return failure is not None and (failure.cause is Cause.REFUSED or rejects(item.unit))


def merge_scores(asked: Sequence[Asked], hosts: list[str]) -> writing.Rendered:
    """`[host, weight, unit]` for every host and every unit that did not fail; weights stay raw."""
    return writing.array(
        writing.weights(hosts, array("i", item.outcome.body), item.unit)
        for item in asked
        if item.outcome.failure is None
    )


def read_balance(outcome: Outcome) -> tuple[str, list[str]]:
    """The VM to move and the hosts that may take it: empty ones where nothing is to be moved."""
    if outcome.failure is not None:
        return "", []
    return _decode_balance(outcome.body)


def checked(outcome: Outcome, hosts: Sequence[str], width: int | None) -> Outcome:
    """The outcome if its body has `width` bytes for each host (None: is a balance answer), else a failure.

    Units cannot cause such bodies by what they answer, only by writing into their worker's connection.
    """
    if outcome.failure is not None:
        return outcome
    fits = _is_balance(outcome, hosts) if width is None else len(outcome.body) == len(hosts) * width
    return outcome if fits else failed(Cause.CRASHED, "confused its worker process", outcome.seconds)


def _is_balance(outcome: Outcome, hosts: Sequence[str]) -> bool:
    """Whether it names a VM that the engine can read and hosts it asked about, or nothing at all."""
    try:
        vm, targets = read_balance(outcome)
    except msgspec.MsgspecError:
        return False
    return (is_vm_id(vm) and set(targets) <= set(hosts)) if targets else not vm


#: The same is reported again after this many seconds.
_QUIET_SECONDS = 600.0
_DIGEST_SIZE = 16


#: Bytes for each host in the body of a worker's answer; a balance answer is JSON.
_WIDTHS = {UnitKind.FILTER: 1, UnitKind.SCORE: 4, UnitKind.BALANCE: None}

#: What a unit would answer about no hosts at all.
_NO_HOSTS = {UnitKind.FILTER: b"", UnitKind.SCORE: b"", UnitKind.BALANCE: b'["",[]]'}

_CONSEQUENCES = {
    UnitKind.FILTER: "it filtered no host",
    UnitKind.SCORE: "its weights do not count",
    UnitKind.BALANCE: "nothing is balanced",
}


class Scheduler:
    """Answers the engine's calls, on an event loop."""

    def __init__(self, plugins: Callable[[], Plugins], deadline: float, rejects: Rejects) -> None:
        """`plugins` gives what can be asked now."""
        self._plugins = plugins
        self.breakers = Breakers()
        self._deadline = deadline
        self._rejects = rejects
        self._failures = Said(_QUIET_SECONDS)
        # Apart: however many VMs are refused, no failure is reported again for it.
        self._refusals = Said(_QUIET_SECONDS)

    @property
    def plugins(self) -> Plugins:
        """What can be asked now."""
        return self._plugins()

    def discover(self, stamp: str = "") -> dict[str, dict[str, list[str]]]:
        """Every unit with its description and properties, under exactly the keys that the engine knows.

        Each description ends with the stamp.
        """
        keys = {"filters": UnitKind.FILTER, "scores": UnitKind.SCORE, "balance": UnitKind.BALANCE}
        return {
            key: {
                unit.name: [f"{unit.description}{stamp}".strip(), unit.properties]
                for unit in self.plugins.of_kind(kind).values()
            }
            for key, kind in keys.items()
        }

    async def answer(self, question: Question, arrived: float, by_hand: bool = False) -> Answer:
        """Ask the units side by side and put their answers together.

        The deadline counts from `arrived` (the loop's time). A call `by_hand` is an administrator's, who
        looks for trouble: it reports every failure, and neither cuts a unit off nor is kept from one.
        """
        outcomes, jobs = self._prepare(question, by_hand)
        asked = [job.ask(arrived + self._deadline) for job in jobs.values()]
        found = [await asked[0]] if len(asked) == 1 else await asyncio.gather(*asked)  # needs a task for each
        return self._finish(question, outcomes, jobs, found, by_hand)

    def fallen(self, answer: Answer) -> dict[str, list[str]]:
        """For each host that fell, the units that dropped it."""
        if answer.question.kind is not UnitKind.FILTER:
            return {}
        return fallen_hosts(answer.asked, answer.question.hosts, self._rejects)

    def _prepare(self, question: Question, by_hand: bool) -> tuple[dict[str, Outcome], dict[str, Job]]:
        """The outcomes of units that need not be asked (missing, cut off), and the jobs for all others."""
        plugins = self.plugins
        pools, loaded = plugins.pools, plugins.of_kind(question.kind)
        body = self._encode(question)
        outcomes: dict[str, Outcome] = {}
        jobs: dict[str, Job] = {}
        for name in question.units:
            unit = loaded.get(name)
            if unit is None:
                text = f"is no {question.kind.value} that is loaded; see `ovirt-scheduler-proxy check`"
                outcomes[name] = failed(Cause.MISSING, text)
            elif not question.hosts:
                outcomes[name] = Outcome(_NO_HOSTS[question.kind])
            elif not by_hand and not self.breakers.admit(_key(unit), bool(pools[unit.folder].workers)):
                text = f"is cut off for up to {OPEN_SECONDS:g} s because it fails again and again"
                outcomes[name] = failed(Cause.CUT_OFF, text)
            else:
                jobs[name] = Job(_key(unit), pools[unit.folder], _request(unit, body, by_hand))
        return outcomes, jobs

    def _finish(
        self,
        question: Question,
        outcomes: dict[str, Outcome],
        jobs: dict[str, Job],
        found: list[Outcome],
        by_hand: bool,
    ) -> Answer:
        for (name, job), outcome in zip(jobs.items(), found, strict=True):
            whole = checked(outcome, question.hosts, _WIDTHS[question.kind])
            if not by_hand:
                self.breakers.record(job.key, whole.failure.cause if whole.failure else None)
            outcomes[name] = whole
        asked = [Asked(name, outcomes[name]) for name in question.units]
        result, hosts_out = self._merge(question, asked)
        return Answer(question, asked, result, self._errors(question, asked, by_hand), hosts_out)

    def _merge(self, question: Question, asked: list[Asked]) -> tuple[Any, int]:
        if question.kind is UnitKind.FILTER:
            hosts = merge_filters(asked, question.hosts, self._rejects)
            return hosts, len(hosts)
        if question.kind is UnitKind.SCORE:
            return merge_scores(asked, question.hosts), len(question.hosts)
        vm, targets = read_balance(asked[0].outcome)
        return [vm, targets], len(targets)

    def _errors(self, question: Question, asked: list[Asked], by_hand: bool) -> dict[str, list[str]]:
        """What the administrator reads about each unit that failed, unless it was reported a moment ago."""
        return {
            item.unit: [self._sentence(item.unit, question.kind, item.outcome.failure)]
            for item in asked
            if item.outcome.failure is not None
            and (by_hand or self._is_news(question, item.unit, item.outcome.failure))
        }

    def _is_news(self, question: Question, unit: str, failure: Failure) -> bool:
        """Whether this is to be reported now; if so, it counts as reported."""
        if failure.cause is Cause.REFUSED:
            words = (digest(text, _DIGEST_SIZE) for text in (question.vm, failure.sentence))
            return self._refusals.is_news((unit, *words))
        return self._failures.is_news((unit, question.kind, failure.cause))

    def _sentence(self, unit: str, kind: UnitKind, failure: Failure) -> str:
        consequence = _CONSEQUENCES[kind]
        if failure.cause is Cause.REFUSED:
            consequence = "no host is accepted"
        elif kind is UnitKind.FILTER and self._rejects(unit):
            consequence = "no host is accepted, as its on_failure asks"
        reported = failure.sentence
        if failure.cause is Cause.OVERRAN:
            reported = f"{reported} ({self._deadline:g} s)"
        return f"{reported}; {consequence}"

    @staticmethod
    def _encode(question: Question) -> bytes:
        if question.kind is UnitKind.BALANCE:
            return msgspec.json.encode([question.hosts, question.properties])
        return msgspec.json.encode([question.hosts, question.vm, question.properties])


def _key(unit: Unit) -> str:
    return f"{unit.kind.value} {unit.name}"


def _request(unit: Unit, body: bytes, by_hand: bool) -> bytes:
    head = {"module": unit.module, "unit": unit.name, "kind": unit.kind.value}
    if by_hand:
        head["asked"] = "by hand"
    return pack(msgspec.json.encode(head), body)
