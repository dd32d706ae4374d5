"""Takes the engine's questions to the rules, and the rules' answers back as ids and ranks."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from time import monotonic
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.client import DEFAULT_DEADLINE_SECONDS, configured, opened
from ovirt_placement.inventory.decision import Decision, Decisions
from ovirt_placement.inventory.publication import Decide, Decided, decoded, encoded, now
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import group_name, host_name, vm_name
from ovirt_placement.rules.catalogue import UNITS, gives_way
from ovirt_placement.rules.elements.rule import Rule
from ovirt_placement.rules.elements.verdict import BalanceRequest, Reason, Request, Verdict, Weight, sentence
from ovirt_placement.rules.load import limits_of, overloaded
from ovirt_service.errors import UserError
from ovirt_service.repetition import Few, Said

#: Names are recorded of this many VMs and groups at most; the reader of the record knows the others.
_MOST_NAMES: Final = 64


class RecordedReason(NamedTuple):
    """A reason; `kind` is the number of its kind."""

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


def recorded(verdicts: Sequence[Verdict], snapshot: Snapshot) -> str:
    """The vetoes of the hosts that were refused, as JSON; empty if none was."""
    kinds: dict[str, int] = {}
    sentences: dict[str, str] = {}
    vms: dict[str, None] = {}
    groups: dict[str, None] = {}

    def one(reason: Reason) -> RecordedReason:
        kind = reason.kind
        sentences[kind.name] = kind.sentence
        if reason.vm is not None:
            vms[reason.vm] = None
        if reason.group is not None:
            groups[reason.group] = None
        number = kinds.setdefault(kind.name, len(kinds))
        return RecordedReason(
            number, reason.group, reason.vm, reason.host, reason.number, reason.unit, reason.status
        )

    hosts = {
        verdict.host: tuple(one(reason) for reason in verdict.reasons if reason.kind.veto)
        for verdict in verdicts
        if not verdict.accepted
    }
    if not hosts:
        return ""
    return msgspec.json.encode(
        RecordedReasons(
            kinds=tuple(sentences.items()),
            vms={vm: vm_name(vm, snapshot) for vm in islice(vms, _MOST_NAMES)},
            groups={group: group_name(group, snapshot) for group in islice(groups, _MOST_NAMES)},
            hosts=hosts,
        )
    ).decode()


#: A decision on a state older than this is worth a line in the log.
_OLD_SECONDS = 2.0


@dataclass
class Report:
    """The lines of one decision for its caller: level and text."""

    _question: Decide
    #: Of decisions before: units that decided on an old state; units and parameters that cannot be together.
    _old: Said
    _complained: Said
    lines: list[tuple[int, str]] = field(default_factory=list)

    def age(self, decision: Decision) -> None:
        """Warn, once until it is over, that the engine was too slow to be asked."""
        unit = self._question.unit
        if decision.age_seconds > _OLD_SECONDS:
            if self._old.is_news(unit):
                self._warn(
                    f"the state of the engine is {decision.age_seconds:.1f} s old: it does not answer in time"
                )
        elif self._old.is_over(unit):
            self._warn("the engine answers in time again")

    def notes(self, rule: Rule, snapshot: Snapshot) -> None:
        """Warn of what does not change the answer but should not stay as it is."""
        for note in rule.notes(snapshot, self._question.vm):
            self._warn(f"{self._vm(snapshot)}: {sentence(note, snapshot)}")

    def complaints(self, rule: Rule) -> None:
        """Warn once of parameters that cannot be together."""
        parameters = self._question.parameters
        # Kept as a number: any client that may ask could send any, up to a mebibyte of them.
        asked = (rule.name, hash(frozenset(parameters.items())))
        if parameters and self._complained.is_news(asked):
            for complaint in rule.complaints(parameters):
                self._warn(complaint)

    def verdicts(self, verdicts: Sequence[Verdict], snapshot: Snapshot) -> None:
        """Warn of why hosts were accepted that perhaps should not have been.

        At debug level, say of each refused host why.
        """
        warned = Counter(
            reason
            for verdict in verdicts
            if verdict.accepted and verdict.reasons
            for reason in verdict.reasons
            if reason.kind.warned
        )
        hosts: Counter[str] = Counter()
        for reason, count in warned.items():
            hosts[sentence(reason, snapshot)] += count
        for why, count in hosts.items():
            self._warn(f"{self._vm(snapshot)}: {count} hosts: {why}")
        if self._question.explains:
            for verdict in verdicts:
                if not verdict.accepted:
                    self._explain(verdict, "refused", snapshot)

    def ranks(self, weights: Iterable[Weight], snapshot: Snapshot) -> None:
        """At debug level, say of each host how it ranks and why."""
        if self._question.explains:
            for weight in weights:
                self._explain(weight, f"rank {weight.rank}", snapshot)

    def _vm(self, snapshot: Snapshot) -> str:
        return f"VM {vm_name(self._question.vm, snapshot)}"

    def _warn(self, text: str) -> None:
        self.lines.append((logging.WARNING, f"{self._question.unit}: {text}"))

    def _explain(self, found: Verdict | Weight, outcome: str, snapshot: Snapshot) -> None:
        why = "; ".join(sentence(reason, snapshot) for reason in found.reasons)
        text = f"{self._vm(snapshot)}: host {host_name(found.host, snapshot)} {outcome}: {why}"
        self.lines.append((logging.DEBUG, f"{self._question.unit}: {text}"))


_SECONDS_PER_MINUTE = 60


class Overload:
    """What is overloaded at the first look is taken to have been so for long.

    A process of the old proxy never has a second one.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        self._looked = False

    def minutes(
        self, snapshot: Snapshot, hosts: tuple[str, ...], parameters: Mapping[str, str]
    ) -> dict[str, float]:
        """For how many minutes each of the hosts has been overloaded that is so now."""
        now = self._clock()
        start = now if self._looked else float("-inf")
        self._looked = True
        others = {host: since for host, since in self._since.items() if host not in hosts}
        busy = {
            host: self._since.get(host, start) for host in overloaded(snapshot, hosts, limits_of(parameters))
        }
        self._since = others | busy
        return {host: (now - since) / _SECONDS_PER_MINUTE for host, since in busy.items()}


_log = logging.getLogger(__name__)

#: So long is waited for a state where none is known yet.
_FIRST_SECONDS = 1.0
#: Of failures of one unit, this many are logged in this time.
_MOST_FAILURES, _FAILURES_SECONDS = 5, 60.0


class Decider:
    """Answers policy units by the states of one engine; for any thread."""

    def __init__(self, decisions: Decisions, first_seconds: float = _FIRST_SECONDS) -> None:
        """So long is waited for a state where none is known yet."""
        self._decisions = decisions
        self._first_seconds = first_seconds
        self._overload = Overload()
        self._old, self._complained = Said(), Said()
        self._failures = Few(_MOST_FAILURES, _FAILURES_SECONDS)

    def __call__(self, question: Decide) -> Decided:
        """Answer a question; what went wrong is the answer, too."""
        if question.unit not in UNITS:
            return Decided(failure=f"there is no unit {question.unit!r:.100}")
        report = Report(question, self._old, self._complained)
        try:
            return replace(self._answered(question, report), log=report.lines)
        except UserError as error:
            return Decided(failure=str(error), log=report.lines)
        except Exception as error:  # the caller learns of it, whatever it is
            left_out = self._failures.left_out(question.unit)
            if left_out is not None:
                _log.exception("%s failed, after %d failures that are not shown", question.unit, left_out)
            return Decided(failure=f"{type(error).__name__}: {error}", log=report.lines)

    def _answered(self, question: Decide, report: Report) -> Decided:
        rule = UNITS[question.unit]
        if question.method == "balance":
            return self._chosen_move(rule, question)
        decision = self._decisions.about(
            question.vm, patient=not question.asks_again, first_seconds=self._first_seconds
        )
        if question.vm not in decision.confirmed.vm_by_id:
            return Decided(
                failure=f"the engine lists no VM {question.vm}: is this the engine that asks, and may our"
                " user see it?",
                awaited=decision.awaited,
            )
        answer = self._accepted_hosts if question.method == "filter" else self._ranked_hosts
        return answer(rule, question, decision, report)

    def _accepted_hosts(self, rule: Rule, question: Decide, decision: Decision, report: Report) -> Decided:
        """A filter goes by what the engine has confirmed: what is only expected refuses no host."""
        request = _request(rule, question, report)
        report.notes(rule, decision.confirmed)
        verdicts = _verdicts(rule, decision, request)
        if loud := _loud(verdicts):
            why = "; ".join(sentence(reason, decision.confirmed) for reason in loud)
            return Decided(failure=why, refuses=True)
        report.verdicts(verdicts, decision.confirmed)
        report.age(decision)
        if not all(verdict.accepted for verdict in verdicts) and gives_way(decision.confirmed, request):
            return Decided(question.hosts, age_seconds=decision.age_seconds)
        accepted = [verdict.host for verdict in verdicts if verdict.accepted]
        if decision.base.saved and not accepted:
            raise UserError("by the state saved before the service started no host is left; it is read again")
        if _begins(decision, question):
            vm = decision.confirmed.vm_by_id[question.vm]
            decision.accepted.leave_accepted(rule.name, vm, accepted, now())
        reasons = _reasons(rule, decision, request, verdicts) if question.records else ""
        return Decided(accepted, age_seconds=decision.age_seconds, reasons=reasons)

    def _ranked_hosts(self, rule: Rule, question: Decide, decision: Decision, report: Report) -> Decided:
        """A weight counts what is expected."""
        snapshot, request = decision.snapshot, _request(rule, question, report)
        weights = rule.weight(snapshot, request) if rule.weight else ()
        report.ranks(weights, snapshot)
        report.age(decision)
        ranks = [weight.rank for weight in weights]
        if weights and _begins(decision, question):
            vm, factor = snapshot.vm_by_id[question.vm], _factor(snapshot, question.vm, rule.name)
            decision.accepted.leave_ranks(rule.name, vm, request.candidate_hosts, ranks, factor, now())
        return Decided([weight.host for weight in weights], ranks, age_seconds=decision.age_seconds)

    def _chosen_move(self, rule: Rule, question: Decide) -> Decided:
        """No VM and no hosts where there is nothing to do."""
        decision = self._decisions.about(patient=not question.asks_again, first_seconds=self._first_seconds)
        snapshot, hosts = decision.snapshot, tuple(question.hosts)
        minutes = self._overload.minutes(snapshot, hosts, question.parameters)
        request = BalanceRequest(hosts, question.parameters, minutes)
        move = rule.balance(snapshot, request) if rule.balance else None
        vm, targets = (move.vm, list(move.hosts)) if move else ("", [])
        return Decided(targets, vm=vm, age_seconds=decision.age_seconds)


def _verdicts(rule: Rule, decision: Decision, request: Request) -> tuple[Verdict, ...]:
    if rule.filter is None:
        return ()
    unconfirmed = decision.snapshot.unconfirmed
    if unconfirmed and not rule.depends_on.fixed:
        request = replace(request, unconfirmed=unconfirmed)
    return rule.filter(decision.confirmed, request)


def _reasons(rule: Rule, decision: Decision, request: Request, verdicts: Sequence[Verdict]) -> str:
    """Why hosts are refused, for the proxy's record; a rule that leaves reasons out is asked for them."""
    refused = [verdict for verdict in verdicts if not verdict.accepted]
    if not refused:
        return ""
    if not request.explained and not all(verdict.reasons for verdict in refused):
        refused = [
            verdict
            for verdict in _verdicts(rule, decision, replace(request, explained=True))
            if not verdict.accepted
        ]
    return recorded(refused, decision.confirmed)


def _factor(snapshot: Snapshot, vm: str, unit: str) -> int:
    """What a weight's ranks are multiplied by in the policy of the VM's cluster."""
    policy = snapshot.cluster_by_id[snapshot.vm_by_id[vm].cluster].scheduling_policy
    return policy.weights.get(unit, 1) if policy else 1


def _request(rule: Rule, question: Decide, report: Report) -> Request:
    report.complaints(rule)
    return Request(
        (question.vm,),
        tuple(question.hosts),
        parameters=question.parameters,
        as_engine=True,
        explained=question.explains,
        drawn=_drawn(question.hosts) if rule.draws else (),
    )


def _begins(decision: Decision, question: Decide) -> bool:
    """Whether the VM may be on its way after this: not where a person asks.

    Nor where its present host is among those asked about, which the engine never does before a migration.
    """
    present = decision.confirmed.vm_by_id[question.vm].host
    return not question.by_hand and (present is None or present not in question.hosts)


def _loud(verdicts: Sequence[Verdict]) -> tuple[Reason, ...]:
    """What the administrators are to learn: such a reason speaks against every host."""
    if not verdicts or verdicts[0].accepted:
        return ()
    return tuple(reason for reason in verdicts[0].reasons if reason.kind.loud)


def _drawn(hosts: Sequence[str]) -> tuple[str, ...]:
    """The hosts in an order drawn by lot."""
    lots = memoryview(os.urandom(8 * len(hosts))).cast("Q")
    return tuple(hosts[at] for at in sorted(range(len(hosts)), key=lots.__getitem__))


def decide(question: bytes, *, stays: bool) -> bytes:
    """Answer as the service would; a process that answers one question alone waits longer, and logs out."""
    asked = decoded(question, partial(msgspec.json.decode, type=Decide))
    if stays:
        return encoded(_decider()(asked))
    try:
        return encoded(_made_decider(DEFAULT_DEADLINE_SECONDS)(asked))
    finally:
        inventory.close()


@cache
def _decider() -> Decider:
    return _made_decider(_FIRST_SECONDS)


def _made_decider(first_seconds: float) -> Decider:
    config = configured()
    return Decider(Decisions(opened(config), config.inventory), first_seconds)
