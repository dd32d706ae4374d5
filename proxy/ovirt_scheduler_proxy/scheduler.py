"""Asks the units that a call names and puts their outcomes together; cuts off one that keeps failing."""

import asyncio
import time
from array import array
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from itertools import compress
from operator import not_
from typing import Any

import msgspec

from ovirt_scheduler_proxy import xmlrpc
from ovirt_scheduler_proxy.plugins import Plugins
from ovirt_scheduler_proxy.processes import Cause, Failure, Outcome, failed
from ovirt_scheduler_proxy.settings import Settings
from ovirt_scheduler_proxy.worker.contract import UnitKind, is_vm_id
from ovirt_scheduler_proxy.worker.kernel import pack
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
            breaker, now = self._breakers.setdefault(key, _Breaker()), self._clock()
            times = breaker.overruns if cause in _OVERRUNS else breaker.crashes
            times.append(now)
            often = len(times) == times.maxlen and now - times[0] <= WINDOW_SECONDS
            if often or breaker.trying:
                breaker.opened_at = now
            breaker.trying = False
        elif key in self._breakers and self._breakers[key].trying:
            if cause is Cause.NO_WORKER:
                self._breakers[key].trying = False  # it was never asked: nothing is known
            else:
                del self._breakers[key]  # it answered, be it with a failure of another kind: it is back

    def open_keys(self) -> list[str]:
        """The units that are cut off, or on trial."""
        return sorted(key for key, breaker in self._breakers.items() if breaker.opened_at is not None)


class Answer(msgspec.Struct, frozen=True):
    """An answer with its story: `result` is for the engine, `plugin_errors` for the administrator."""

    question: xmlrpc.Question
    #: What came of each unit, in the order in which the call names them.
    outcomes: dict[str, Outcome]
    result: Any
    plugin_errors: dict[str, list[str]]
    #: How many hosts are left, for the log.
    hosts_out: int

    def weights(self) -> dict[str, list[int]]:
        """The weights of each unit that scored, in the order of the hosts."""
        if self.question.kind is not UnitKind.SCORE:
            return {}
        return {unit: array("i", body).tolist() for unit, body in _bodies(self.outcomes)}

    @property
    def result_code(self) -> int:
        """0 when every unit could be heard, else 1."""
        return int(any(outcome.failure is not None for outcome in self.outcomes.values()))


def _bodies(outcomes: Mapping[str, Outcome]) -> Iterator[tuple[str, bytes]]:
    """What the units said that could be heard."""
    return ((unit, outcome.body) for unit, outcome in outcomes.items() if outcome.failure is None)


_decode_balance = msgspec.json.Decoder(tuple[str, list[str]]).decode


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
        vm, targets = _decode_balance(outcome.body)
    except msgspec.MsgspecError:
        return False
    return (is_vm_id(vm) and set(targets) <= set(hosts)) if targets else not vm


#: The same is reported again after this many seconds.
_QUIET_SECONDS = 600.0

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

    def __init__(self, plugins: Callable[[], Plugins], settings: Settings) -> None:
        #: What can be asked now.
        self.plugins = plugins
        self.breakers = Breakers()
        self._deadline = settings.calls.deadline_seconds
        self._rejects = settings.rejects
        self._failures = Said(_QUIET_SECONDS)
        # Apart: however many VMs are refused, no failure is reported again for it.
        self._refusals = Said(_QUIET_SECONDS)

    def discover(self, stamp: str = "") -> dict[str, dict[str, list[str]]]:
        """Every unit with its description and properties, under exactly the keys that the engine knows.

        Each description ends with the stamp.
        """
        keys = {"filters": UnitKind.FILTER, "scores": UnitKind.SCORE, "balance": UnitKind.BALANCE}
        return {
            key: {
                unit.unit: [f"{unit.description}{stamp}".strip(), unit.parameters]
                for unit in self.plugins().of_kind(kind).values()
            }
            for key, kind in keys.items()
        }

    async def answer(self, question: xmlrpc.Question, arrived: float, by_hand: bool = False) -> Answer:
        """Ask the units side by side and put their answers together.

        The deadline counts from `arrived` (the loop's time). A call `by_hand` is an administrator's, who
        looks for trouble: it reports every failure, and neither cuts a unit off nor is kept from one.
        """
        outcomes, asked = self._prepare(question, arrived + self._deadline, by_hand)
        calls = list(asked.values())
        found = [await calls[0]] if len(calls) == 1 else await asyncio.gather(*calls)  # needs a task for each
        for unit, outcome in zip(asked, found, strict=True):
            whole = checked(outcome, question.hosts, _WIDTHS[question.kind])
            if not by_hand:
                key = _key(question.kind, unit)
                self.breakers.record(key, whole.failure.cause if whole.failure else None)
            outcomes[unit] = whole
        outcomes = {unit: outcomes[unit] for unit in question.units}
        result, hosts_out = self._merge(question, outcomes)
        return Answer(question, outcomes, result, self._errors(question, outcomes, by_hand), hosts_out)

    def fallen(self, answer: Answer) -> dict[str, list[str]]:
        """For each host that fell, the units that dropped it."""
        fallen: dict[str, list[str]] = {}
        if answer.question.kind is UnitKind.FILTER:
            hosts = answer.question.hosts
            for unit, accepted in self._masks(answer.outcomes, len(hosts)):
                for host in compress(hosts, map(not_, accepted)):
                    fallen.setdefault(host, []).append(unit)
        return fallen

    def _prepare(
        self, question: xmlrpc.Question, deadline: float, by_hand: bool
    ) -> tuple[dict[str, Outcome], dict[str, Coroutine[Any, Any, Outcome]]]:
        """The outcomes of units that need not be asked (missing, cut off), and calls of all others."""
        plugins = self.plugins()
        loaded = plugins.of_kind(question.kind)
        vm = [] if question.kind is UnitKind.BALANCE else [question.vm]
        body = msgspec.json.encode([question.hosts, *vm, question.properties])
        outcomes: dict[str, Outcome] = {}
        asked: dict[str, Coroutine[Any, Any, Outcome]] = {}
        for name in question.units:
            unit, key = loaded.get(name), _key(question.kind, name)
            if unit is None:
                text = f"is no {question.kind.value} that is loaded; see `ovirt-scheduler-proxy check`"
                outcomes[name] = failed(Cause.MISSING, text)
            elif not question.hosts:
                outcomes[name] = Outcome(_NO_HOSTS[question.kind])
            elif not by_hand and not self.breakers.admit(key, bool(plugins.pools[unit.folder].workers)):
                text = f"is cut off for up to {OPEN_SECONDS:g} s because it fails again and again"
                outcomes[name] = failed(Cause.CUT_OFF, text)
            else:
                head = {"module": unit.module, "unit": unit.unit, "kind": unit.kind}
                head |= {"asked": "by hand"} if by_hand else {}
                request = pack(msgspec.json.encode(head), body)
                asked[name] = plugins.pools[unit.folder].ask(key, request, deadline)
        return outcomes, asked

    def _masks(self, outcomes: Mapping[str, Outcome], hosts: int) -> Iterator[tuple[str, bytes]]:
        """By unit, a byte for each host that is not 0 where it accepts it.

        A unit that failed accepts all of them; none if it refuses the VM, or if `on_failure` says so.
        """
        for unit, outcome in outcomes.items():
            failure = outcome.failure
            if failure is None:
                yield unit, outcome.body
            elif failure.cause is Cause.REFUSED or self._rejects(unit):
                yield unit, bytes(hosts)

    def _merge(self, question: xmlrpc.Question, outcomes: Mapping[str, Outcome]) -> tuple[Any, int]:
        """What the engine gets, and how many hosts are left; weights stay raw."""
        hosts = question.hosts
        if question.kind is UnitKind.FILTER:
            masks = [accepted for _, accepted in self._masks(outcomes, len(hosts))]
            votes = masks[0] if len(masks) == 1 else map(all, zip(*masks, strict=True))
            kept = list(compress(hosts, votes)) if masks else hosts
            return kept, len(kept)
        if question.kind is UnitKind.SCORE:
            found = (xmlrpc.weights(hosts, array("i", body), unit) for unit, body in _bodies(outcomes))
            return xmlrpc.array(found), len(hosts)
        vm, targets = next((_decode_balance(body) for _, body in _bodies(outcomes)), ("", []))
        return [vm, targets], len(targets)

    def _errors(
        self, question: xmlrpc.Question, outcomes: Mapping[str, Outcome], by_hand: bool
    ) -> dict[str, list[str]]:
        """What the administrator reads about each unit that failed, unless it was reported a moment ago."""
        return {
            unit: [self._sentence(unit, question.kind, outcome.failure)]
            for unit, outcome in outcomes.items()
            if outcome.failure is not None and (by_hand or self._is_news(question, unit, outcome.failure))
        }

    def _is_news(self, question: xmlrpc.Question, unit: str, failure: Failure) -> bool:
        """Whether this is to be reported now; if so, it counts as reported."""
        if failure.cause is Cause.REFUSED:
            words = (digest(text, size=16) for text in (question.vm, failure.sentence))
            return self._refusals.is_news((unit, *words))
        return self._failures.is_news((unit, question.kind, failure.cause))

    def _sentence(self, unit: str, kind: UnitKind, failure: Failure) -> str:
        consequence = _CONSEQUENCES[kind]
        if failure.cause is Cause.REFUSED:
            consequence = "no host is accepted"
        elif kind is UnitKind.FILTER and self._rejects(unit):
            consequence = "no host is accepted, as its on_failure asks"
        spent = f" ({self._deadline:g} s)" if failure.cause is Cause.OVERRAN else ""
        return f"{failure.sentence}{spent}; {consequence}"


def _key(kind: UnitKind, unit: str) -> str:
    return f"{kind.value} {unit}"
