"""The four methods: checks what the engine asks, asks the units and puts their outcomes together."""

from __future__ import annotations

import asyncio
import logging
import re
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ovirt_scheduler_proxy import xmlrpc as writing
from ovirt_scheduler_proxy.jobs import OPEN_SECONDS, Breakers, Job, ask
from ovirt_scheduler_proxy.pool import Pool
from ovirt_scheduler_proxy.processes import Cause, Failure, Outcome, failed
from ovirt_scheduler_proxy.units import ProblemFound, Unit, UnitKind
from ovirt_scheduler_proxy.worker.answers import is_vm_id
from ovirt_scheduler_proxy.worker.frames import pack
from ovirt_scheduler_proxy.xmlrpc import INVALID_PARAMETERS, UNKNOWN_METHOD, Fault
from ovirt_service.decoding import complaint
from ovirt_service.files import digest
from ovirt_service.log import Said

# A name or an id of the engine's has 36 characters; calls are logged and recorded with them.
_Text = Annotated[str, msgspec.Meta(max_length=1000)]
# A property without a value is an empty one: the engine saves it so where the parameter's regex allows the
# empty text, and keeps all hosts when it gets a fault.
_Properties = dict[_Text, Annotated[str, msgspec.Meta(max_length=100_000)] | None]


class Question(msgspec.Struct, frozen=True):
    """What the engine asks: these units about these hosts, for a VM unless it is about balance."""

    method: str
    kind: UnitKind
    units: list[str]
    hosts: list[str]
    vm: str
    #: Of the cluster's policy.
    properties: dict[str, str]


#: Of each method, what its units are, what its arguments are called, and what they are. The factors of cost
#: functions are only checked: the engine applies them itself.
_METHODS: dict[str, tuple[UnitKind, tuple[str, ...], Any]] = {
    "runFilters": (
        UnitKind.FILTER,
        ("filters", "hosts", "vm", "properties"),
        tuple[list[_Text], list[_Text], _Text, _Properties],
    ),
    "runCostFunctions": (
        UnitKind.SCORE,
        ("cost_functions", "hosts", "vm", "properties"),
        tuple[list[tuple[_Text, int]], list[_Text], _Text, _Properties],
    ),
    "runLoadBalancing": (
        UnitKind.BALANCE,
        ("balance", "hosts", "properties"),
        tuple[_Text, list[_Text], _Properties],
    ),
}
_PLACE = re.compile(r"\[(\d)\]")


def read_question(method: str, parameters: Sequence[Any]) -> Question:
    """The question that a call of one of the three methods asks; units and hosts that stand twice stand once.

    Raises `Fault` for an unknown method or arguments that the engine would not send. The old proxy's own test
    client sends an empty text for no properties.
    """
    if method not in _METHODS:
        known = ", ".join(["discover", *_METHODS])
        raise Fault(UNKNOWN_METHOD, f"there is no method {method[:80]!r}; there are {known}")
    kind, names, types = _METHODS[method]
    check_count(method, parameters, names)
    try:
        given = {} if parameters[-1] in (None, "") else parameters[-1]
        units, hosts, *vm, properties = msgspec.convert([*parameters[:-1], given], types)
    except msgspec.ValidationError as error:
        what = _PLACE.sub(lambda found: names[int(found[1])], complaint(error, Question), count=1)
        raise Fault(INVALID_PARAMETERS, f"{method}: {what}") from None
    if kind is UnitKind.BALANCE:
        units = [units]
    elif kind is UnitKind.SCORE:
        units = [unit for unit, _ in units]
    return Question(
        method,
        kind,
        list(dict.fromkeys(units)),
        list(dict.fromkeys(hosts)),
        vm[0] if vm else "",
        {name: value or "" for name, value in properties.items()},
    )


def check_count(method: str, parameters: Sequence[Any], names: Sequence[str] = ()) -> None:
    """Raise `Fault` unless there are as many arguments as names of them."""
    if len(parameters) != len(names):
        wanted = f"{method}({', '.join(names)})"
        raise Fault(INVALID_PARAMETERS, f"{wanted} takes {len(names)} arguments, not {len(parameters)}")


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


log = logging.getLogger(__name__)

#: Bytes for each host in the body of a worker's answer; a balance answer is JSON.
_WIDTHS = {UnitKind.FILTER: 1, UnitKind.SCORE: 4, UnitKind.BALANCE: None}

#: What a unit would answer about no hosts at all.
_NO_HOSTS = {UnitKind.FILTER: b"", UnitKind.SCORE: b"", UnitKind.BALANCE: b'["",[]]'}

_CONSEQUENCES = {
    UnitKind.FILTER: "it filtered no host",
    UnitKind.SCORE: "its weights do not count",
    UnitKind.BALANCE: "nothing is balanced",
}


@dataclass(frozen=True)
class Plugins:
    """What can be asked at one moment, what is wrong with it, and the pool of each folder: replaced whole."""

    units: tuple[Unit, ...] = ()
    problems: tuple[ProblemFound, ...] = ()
    pools: Mapping[Path, Pool] = field(default_factory=dict)

    def of_kind(self, kind: UnitKind) -> Mapping[str, Unit]:
        """The units of a kind by name."""
        return {unit.name: unit for unit in self.units if unit.kind is kind}


class Scheduler:
    """Answers the engine's calls, on an event loop. `plugins` may be replaced at any time."""

    def __init__(self, plugins: Plugins, deadline: float, rejects: Rejects) -> None:
        self.plugins = plugins
        self.breakers = Breakers()
        self._deadline = deadline
        self._rejects = rejects
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
        asked = [ask(job, arrived + self._deadline) for job in jobs.values()]
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
        loaded = plugins.of_kind(question.kind)
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
            elif not by_hand and not self.breakers.admit(_key(unit), plugins.pools[unit.folder].has_workers):
                text = f"is cut off for up to {OPEN_SECONDS:g} s because it fails again and again"
                outcomes[name] = failed(Cause.CUT_OFF, text)
            else:
                jobs[name] = Job(_key(unit), plugins.pools[unit.folder], _request(unit, body, by_hand))
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
