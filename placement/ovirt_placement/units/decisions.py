"""Takes the engine's questions to the rules, and the rules' answers back as ids and ranks."""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain, islice
from math import inf
from time import monotonic
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import astuple, replace

from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.client import DEFAULT_DEADLINE_SECONDS, configured, opened
from ovirt_placement.inventory.decision import FIRST_SECONDS, Accepted, Base, Decisions
from ovirt_placement.inventory.publication import Decide, Decided, decoded, encoded, now
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import group_name, host_name, vm_name
from ovirt_placement.rules.catalogue import UNITS, gives_way
from ovirt_placement.rules.elements.rule import Rule
from ovirt_placement.rules.elements.verdict import BalanceRequest, Request, Verdict, Weight, sentence
from ovirt_placement.rules.load import limits_of, overloaded
from ovirt_service.errors import UserError
from ovirt_service.repetition import Few, Said

#: Names are recorded of this many VMs and groups at most; the reader of the record knows the others.
_MOST_NAMES: Final = 64
#: A decision on a state older than this is worth a line in the log.
_OLD_SECONDS = 2.0
#: Of failures of one unit, this many are logged in this time.
_MOST_FAILURES, _FAILURES_SECONDS = 5, 60.0
_SECONDS_PER_MINUTE = 60

_log = logging.getLogger(__name__)


class RecordedReason(NamedTuple):
    """A `Reason`; `kind` is the number of its kind."""

    kind: int
    group: str | None
    vm: str | None
    host: str | None
    number: float | None
    unit: str | None
    status: str | None


class RecordedReasons(msgspec.Struct, frozen=True):
    """Why one unit dropped hosts in one decision."""

    #: Names and sentences of the kinds of reasons: a later release need not know them.
    kinds: tuple[tuple[str, str], ...]
    #: Names of VMs, and groups with the word for what they are, by id: they may be gone when this is read.
    vms: dict[str, str]
    groups: dict[str, str]
    #: By host.
    hosts: dict[str, tuple[RecordedReason, ...]]


def recorded(verdicts: Iterable[Verdict], snapshot: Snapshot) -> str:
    """The vetoes of hosts that were refused, as JSON; empty if there is none."""
    vetoes = {each.host: [one for one in each.reasons if one.kind.veto] for each in verdicts}
    if not vetoes:
        return ""
    every = list(chain.from_iterable(vetoes.values()))
    kinds = {one.kind.name: one.kind.sentence for one in every}
    numbers = {name: number for number, name in enumerate(kinds)}
    vms = dict.fromkeys(one.vm for one in every if one.vm is not None)
    groups = dict.fromkeys(one.group for one in every if one.group is not None)
    found = RecordedReasons(
        kinds=tuple(kinds.items()),
        vms={vm: vm_name(vm, snapshot) for vm in islice(vms, _MOST_NAMES)},
        groups={group: group_name(group, snapshot) for group in islice(groups, _MOST_NAMES)},
        hosts={
            host: tuple(RecordedReason(numbers[one.kind.name], *astuple(one)[1:]) for one in reasons)
            for host, reasons in vetoes.items()
        },
    )
    return msgspec.json.encode(found).decode()


class Overload:
    """What is overloaded at the first look is taken to have been so for long.

    A process of the old proxy never has a second one.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        #: None before the first look.
        self._since: dict[str, float] | None = None

    def minutes(
        self, snapshot: Snapshot, hosts: tuple[str, ...], parameters: Mapping[str, str]
    ) -> dict[str, float]:
        """For how many minutes each of the hosts has been overloaded that is so now."""
        now = self._clock()
        known, start = ({}, -inf) if self._since is None else (self._since, now)
        others = {host: since for host, since in known.items() if host not in hosts}
        busy = {host: known.get(host, start) for host in overloaded(snapshot, hosts, limits_of(parameters))}
        self._since = others | busy
        return {host: (now - since) / _SECONDS_PER_MINUTE for host, since in busy.items()}


@dataclass(frozen=True)
class _Case:
    """A question, the unit's rule, the state to decide on, and the lines of the caller's log."""

    question: Decide
    rule: Rule
    base: Base
    accepted: Accepted
    log: list[tuple[int, str]]

    @property
    def confirmed(self) -> Snapshot:
        """What the engine has shown, and what the enforcer has begun: filters go by it."""
        return self.base.snapshot

    @cached_property
    def expected(self) -> Snapshot:
        """The same with the placements that are expected: weights go by it."""
        return self.accepted.over(self.confirmed, self.base.as_of, now(), self.question.vm or None)

    def request(self) -> Request:
        question = self.question
        return Request(
            (question.vm,),
            tuple(question.hosts),
            parameters=question.parameters,
            as_engine=True,
            explained=question.explains,
            drawn=tuple(random.sample(question.hosts, len(question.hosts))) if self.rule.draws else (),
        )

    def verdicts(self, request: Request) -> tuple[Verdict, ...]:
        """What is only expected refuses no host."""
        if self.rule.filter is None:
            return ()
        unconfirmed = self.expected.unconfirmed
        if unconfirmed and not self.rule.depends_on.fixed:
            request = replace(request, unconfirmed=unconfirmed)
        return self.rule.filter(self.confirmed, request)

    @property
    def begins(self) -> bool:
        """Whether the VM may be on its way after this: not where a person asks.

        Nor where its present host is among those asked about, which the engine never does before a migration.
        """
        present = self.confirmed.vm_by_id[self.question.vm].host
        return not self.question.by_hand and (present is None or present not in self.question.hosts)

    def warn(self, text: str) -> None:
        self.log.append((logging.WARNING, f"{self.question.unit}: {text}"))

    def warn_of_vm(self, text: str) -> None:
        self.warn(f"VM {vm_name(self.question.vm, self.confirmed)}: {text}")

    def explain(self, found: Verdict | Weight, outcome: str) -> None:
        """At debug level, say of a host how it fares and why."""
        snapshot = self.confirmed
        why = "; ".join(sentence(reason, snapshot) for reason in found.reasons)
        vm, host = vm_name(self.question.vm, snapshot), host_name(found.host, snapshot)
        self.log.append((logging.DEBUG, f"{self.question.unit}: VM {vm}: host {host} {outcome}: {why}"))


class Decider:
    """Answers policy units by the states of one engine; for any thread."""

    def __init__(self, decisions: Decisions) -> None:
        self._decisions = decisions
        self._overload = Overload()
        #: Units that decided on an old state; units and parameters that cannot be together.
        self._old, self._complained = Said(), Said()
        self._failures = Few(_MOST_FAILURES, _FAILURES_SECONDS)

    def __call__(self, question: Decide) -> Decided:
        """Answer a question; what went wrong is the answer, too."""
        if question.unit not in UNITS:
            return Decided(failure=f"there is no unit {question.unit!r:.100}")
        log: list[tuple[int, str]] = []
        try:
            return replace(self._answered(question, log), log=log)
        except UserError as error:
            return Decided(failure=str(error), log=log)
        except Exception as error:  # the caller learns of it, whatever it is
            left_out = self._failures.left_out(question.unit)
            if left_out is not None:
                _log.exception("%s failed, after %d failures that are not shown", question.unit, left_out)
            return Decided(failure=f"{type(error).__name__}: {error}", log=log)

    def _answered(self, question: Decide, log: list[tuple[int, str]]) -> Decided:
        vm = None if question.method == "balance" else question.vm
        base = self._decisions.about(vm, patient=not question.asks_again)
        case = _Case(question, UNITS[question.unit], base, self._decisions.accepted, log)
        if vm is None:
            return self._chosen_move(case)
        if vm not in base.snapshot.vm_by_id:
            why = f"the engine lists no VM {vm}: is this the engine that asks, and may our user see it?"
            if base.awaited:
                why = f"the engine has not answered yet about VM {vm}, which is new here: no rule knows it"
            return Decided(failure=why, awaited=base.awaited)
        # Kept as a number: any client that may ask could send any, up to a mebibyte of them.
        asked = question.unit, hash(frozenset(question.parameters.items()))
        if question.parameters and self._complained.is_news(asked):
            for complaint in case.rule.complaints(question.parameters):
                case.warn(complaint)
        return self._accepted_hosts(case) if question.method == "filter" else self._ranked_hosts(case)

    def _accepted_hosts(self, case: _Case) -> Decided:
        question, confirmed, request = case.question, case.confirmed, case.request()
        for note in case.rule.notes(confirmed, question.vm):
            case.warn_of_vm(sentence(note, confirmed))
        verdicts = case.verdicts(request)
        refused = [verdict for verdict in verdicts if not verdict.accepted]
        # What the administrators are to learn speaks against every host.
        loud = [reason for reason in verdicts[0].reasons if reason.kind.loud] if verdicts else []
        if loud and not verdicts[0].accepted:
            return Decided(failure="; ".join(sentence(each, confirmed) for each in loud), refuses=True)
        warned = Counter(
            reason for each in verdicts if each.accepted for reason in each.reasons if reason.kind.warned
        )
        hosts: Counter[str] = Counter()
        for reason, count in warned.items():
            hosts[sentence(reason, confirmed)] += count
        for why, count in hosts.items():
            case.warn_of_vm(f"{count} hosts: {why}")
        for verdict in refused if question.explains else ():
            case.explain(verdict, "refused")
        self._warn_of_age(case)
        if refused and gives_way(confirmed, request):
            return Decided(question.hosts, age_seconds=case.base.age_seconds)
        accepted = [verdict.host for verdict in verdicts if verdict.accepted]
        if case.base.saved and not accepted:
            raise UserError("by the state saved before the service started no host is left; it is read again")
        if case.begins:
            vm = confirmed.vm_by_id[question.vm]
            case.accepted.leave_accepted(question.unit, vm, accepted, now())
        if question.records and not request.explained and not all(each.reasons for each in refused):
            # A rule that leaves reasons out is asked for them.
            explained = case.verdicts(replace(request, explained=True))
            refused = [verdict for verdict in explained if not verdict.accepted]
        reasons = recorded(refused, confirmed) if question.records else ""
        return Decided(accepted, age_seconds=case.base.age_seconds, reasons=reasons)

    def _ranked_hosts(self, case: _Case) -> Decided:
        question, snapshot, request = case.question, case.expected, case.request()
        weights: Sequence[Weight] = case.rule.weight(snapshot, request) if case.rule.weight else ()
        for weight in weights if question.explains else ():
            case.explain(weight, f"rank {weight.rank}")
        self._warn_of_age(case)
        ranks = [weight.rank for weight in weights]
        if weights and case.begins:
            vm = snapshot.vm_by_id[question.vm]
            policy = snapshot.cluster_by_id[vm.cluster].scheduling_policy
            factor = policy.weights.get(question.unit, 1) if policy else 1
            case.accepted.leave_ranks(question.unit, vm, request.candidate_hosts, ranks, factor, now())
        return Decided([weight.host for weight in weights], ranks, age_seconds=case.base.age_seconds)

    def _chosen_move(self, case: _Case) -> Decided:
        """No VM and no hosts where there is nothing to do."""
        question, snapshot = case.question, case.expected
        hosts = tuple(question.hosts)
        minutes = self._overload.minutes(snapshot, hosts, question.parameters)
        request = BalanceRequest(hosts, question.parameters, minutes)
        move = case.rule.balance(snapshot, request) if case.rule.balance else None
        vm, targets = (move.vm, list(move.hosts)) if move else ("", [])
        return Decided(targets, vm=vm, age_seconds=case.base.age_seconds)

    def _warn_of_age(self, case: _Case) -> None:
        """Warn, once until it is over, that the engine was too slow to be asked."""
        unit, seconds = case.question.unit, case.base.age_seconds
        if seconds > _OLD_SECONDS and self._old.is_news(unit):
            case.warn(f"the state of the engine is {seconds:.1f} s old: it does not answer in time")
        elif seconds <= _OLD_SECONDS and self._old.is_over(unit):
            case.warn("the engine answers in time again")


def decide(question: bytes, *, stays: bool) -> bytes:
    """Answer as the service would; a process that answers one question alone waits longer, and logs out."""
    asked = decoded(question, partial(msgspec.json.decode, type=Decide))
    try:
        return encoded(_decider(FIRST_SECONDS if stays else DEFAULT_DEADLINE_SECONDS)(asked))
    finally:
        if not stays:
            inventory.close()
            _decider.cache_clear()


@cache
def _decider(first_seconds: float) -> Decider:
    config = configured()
    return Decider(Decisions(opened(config), config.inventory, first_seconds))
