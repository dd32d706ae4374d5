"""Takes the engine's questions to the rules, and the rules' answers back as ids and ranks.

The service decides so for all units of a machine; where none runs, a unit does by its own reading.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from time import monotonic

import msgspec
from msgspec.structs import replace

from ovirt_placement import inventory
from ovirt_placement.inventory.client import DEFAULT_DEADLINE_SECONDS, configured, opened
from ovirt_placement.inventory.decision import Decision, Decisions
from ovirt_placement.inventory.protocol import Decide, Decided, decoded, encoded
from ovirt_placement.inventory.publication import now
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.elements.rule import Rule
from ovirt_placement.rules.elements.verdict import BalanceRequest, Reason, Request, Verdict, sentence
from ovirt_placement.rules.load import limits_of, overloaded
from ovirt_placement.rules.scheduling import gives_way
from ovirt_placement.units.reporting import Report, Reporting, recorded
from ovirt_service.errors import UserError
from ovirt_service.log import Few

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
        self._reporting = Reporting()
        self._failures = Few(_MOST_FAILURES, _FAILURES_SECONDS)

    def __call__(self, question: Decide) -> Decided:
        """Answer a question; what went wrong is the answer, too."""
        if question.unit not in UNITS:
            return Decided(failure=f"there is no unit {question.unit!r:.100}")
        report = Report(self._reporting, question)
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
        decision = self._about(question)
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

    def _about(self, question: Decide) -> Decision:
        """What is known of the engine; it is asked once more for a VM that it does not show yet."""
        about = partial(
            self._decisions.about,
            question.vm,
            patient=not question.asks_again,
            first_seconds=self._first_seconds,
        )
        decision = about()
        return decision if question.vm in decision.confirmed.vm_by_id else about(missing=True)


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
    return Decider(Decisions(opened(config).engine, config.inventory), first_seconds)
