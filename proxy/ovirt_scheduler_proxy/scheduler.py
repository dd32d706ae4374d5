"""The four methods: asks the units and builds the answer that the engine gets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ovirt_scheduler_proxy import contract as merging
from ovirt_scheduler_proxy.contract import Answer, Asked, Question
from ovirt_scheduler_proxy.jobs import OPEN_SECONDS, Breakers, Job, run
from ovirt_scheduler_proxy.pool import Pool
from ovirt_scheduler_proxy.processes import Cause, Failure, Outcome, failed
from ovirt_scheduler_proxy.units import Problem, Unit, UnitKind
from ovirt_scheduler_proxy.worker.frames import pack
from ovirt_service.digests import digest
from ovirt_service.saying import Said

#: The same is reported again after this many seconds.
_QUIET_SECONDS = 600.0
_DIGEST_SIZE = 16


class Reporting:
    """Remembers what was reported; of refusals no more than `Said` keeps, and of their words a digest."""

    def __init__(self) -> None:
        self._failures = Said(_QUIET_SECONDS)
        # Apart: however many VMs are refused, no failure is reported again for it.
        self._refusals = Said(_QUIET_SECONDS)

    def is_news(self, question: Question, unit: str, failure: Failure) -> bool:
        """Whether this is to be reported now; if so, it counts as reported."""
        if failure.cause is Cause.REFUSED:
            return self._refusals.is_news(
                (unit, digest(question.vm, _DIGEST_SIZE), digest(failure.sentence, _DIGEST_SIZE))
            )
        return self._failures.is_news((unit, question.kind, failure.cause))


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
    problems: tuple[Problem, ...] = ()
    pools: Mapping[Path, Pool] = field(default_factory=dict)

    def of_kind(self, kind: UnitKind) -> Mapping[str, Unit]:
        """The units of a kind by name."""
        return {unit.name: unit for unit in self.units if unit.kind is kind}


class Scheduler:
    """Answers the engine's calls, on an event loop. `plugins` may be replaced at any time."""

    def __init__(self, plugins: Plugins, deadline: float, rejects: merging.Rejects) -> None:
        self.plugins = plugins
        self.breakers = Breakers()
        self._deadline = deadline
        self._rejects = rejects
        self._reporting = Reporting()

    def discover(self, stamp: str = "") -> dict[str, dict[str, list[str]]]:
        """Every unit with its description and properties, under exactly the keys that the engine knows.

        With a `stamp`, it ends each description, in brackets.
        """
        keys = {"filters": UnitKind.FILTER, "scores": UnitKind.SCORE, "balance": UnitKind.BALANCE}
        return {
            key: {
                unit.name: [_stamped(unit.description, stamp), unit.properties]
                for unit in self.plugins.of_kind(kind).values()
            }
            for key, kind in keys.items()
        }

    def answer(
        self,
        question: Question,
        arrived: float,
        done: Callable[[Answer | None], None],
        by_hand: bool = False,
    ) -> None:
        """Ask the units and hand the answer to `done`, or None should the proxy itself have erred.

        The deadline counts from `arrived` (the loop's time). A call `by_hand` is an administrator's, who
        looks for trouble: it reports every failure, and neither cuts a unit off nor is kept from one.
        """
        outcomes, jobs = self._prepare(question, by_hand)

        def finish(found: list[Outcome]) -> None:
            try:
                answer = self._finish(question, outcomes, jobs, found, by_hand)
            except Exception:
                log.exception("the answers of the units could not be put together")
                answer = None
            done(answer)

        run(list(jobs.values()), arrived + self._deadline, finish)

    def fallen(self, answer: Answer) -> dict[str, list[str]]:
        """For each host that fell, the units that dropped it."""
        if answer.question.kind is not UnitKind.FILTER:
            return {}
        return merging.fallen_hosts(answer.asked, answer.question.hosts, self._rejects)

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
            whole = merging.checked(outcome, question.hosts, _WIDTHS[question.kind])
            if not by_hand:
                self.breakers.record(job.key, whole.failure.cause if whole.failure else None)
            outcomes[name] = whole
        asked = [Asked(name, outcomes[name]) for name in question.units]
        result, hosts_out = self._merge(question, asked)
        return Answer(question, asked, result, self._errors(question, asked, by_hand), hosts_out)

    def _merge(self, question: Question, asked: list[Asked]) -> tuple[Any, int]:
        if question.kind is UnitKind.FILTER:
            hosts = merging.merge_filters(asked, question.hosts, self._rejects)
            return hosts, len(hosts)
        if question.kind is UnitKind.SCORE:
            return merging.merge_scores(asked, question.hosts), len(question.hosts)
        vm, targets = merging.read_balance(asked[0].outcome)
        return [vm, targets], len(targets)

    def _errors(self, question: Question, asked: list[Asked], by_hand: bool) -> dict[str, list[str]]:
        """What the administrator reads about each unit that failed, unless it was reported a moment ago."""
        return {
            item.unit: [self._sentence(item.unit, question.kind, item.outcome.failure)]
            for item in asked
            if item.outcome.failure is not None
            and (by_hand or self._reporting.is_news(question, item.unit, item.outcome.failure))
        }

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


def _stamped(description: str, stamp: str) -> str:
    return f"{description} [{stamp}]".strip() if stamp else description


def _key(unit: Unit) -> str:
    return f"{unit.kind.value} {unit.name}"


def _request(unit: Unit, body: bytes, by_hand: bool) -> bytes:
    head = {"module": unit.module, "unit": unit.name, "kind": unit.kind.value}
    if by_hand:
        head["asked"] = "by hand"
    return pack(msgspec.json.encode(head), body)
