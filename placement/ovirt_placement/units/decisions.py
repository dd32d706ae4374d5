"""Takes the engine's questions to the rules, and the rules' answers back as ids and ranks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ovirt_placement import inventory
from ovirt_placement.inventory import Decision
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.expected_order import with_order
from ovirt_placement.rules.reasons import Reason
from ovirt_placement.rules.rule import Rule
from ovirt_placement.rules.scheduling.giving_way import gives_way
from ovirt_placement.rules.sentences import sentence
from ovirt_placement.rules.verdict import BalanceRequest, Request, Verdict
from ovirt_placement.units import reporting
from ovirt_placement.units.answering import Aged, AgedMove, by_hand, records, stays
from ovirt_placement.units.bursts import doubtful_peers
from ovirt_placement.units.overload import Overload
from ovirt_placement.units.readiness import Readiness
from ovirt_placement.units.recorded_reasons import recorded

#: The cluster's scheduling properties, as the engine hands them to every unit; None for none at all.
Properties = Mapping[str, str] | None

_readiness = Readiness()
_overload = Overload()


class UnknownVmError(LookupError):
    """The engine asks about a VM that it does not list itself."""

    def __init__(self, vm: str, awaits: bool) -> None:
        #: Marks for the proxy that the engine is asked for it: the unit is to be asked again in a moment.
        self.awaits = awaits
        super().__init__(
            f"the engine lists no VM {vm}: is this the engine that asks, and may our user see it?"
        )


class RefusedLoudlyError(LookupError):
    """A rule refuses every host for a reason that the engine's administrators are to learn."""

    #: Marks the filter's answer for the proxy: no host, and the reason.
    refuses = True

    def __init__(self, reasons: Sequence[Reason], snapshot: Snapshot) -> None:
        super().__init__("; ".join(sentence(reason, snapshot) for reason in reasons))


def parameters(unit: str) -> str:
    """The parameters that the engine offers for a unit."""
    return UNITS[unit].parameters


def accepted_hosts(unit: str, hosts: Sequence[str], vm: str, properties: Properties) -> list[str]:
    """Ask a filter, which goes by what the engine has confirmed: what is only expected refuses no host.

    Raises `RefusedLoudlyError`, `UnknownVmError`, and what `inventory.decision` raises.
    """
    rule, decision = UNITS[unit], _decision_about(vm)
    request = _request(rule, hosts, vm, properties)
    reporting.report_notes(rule, vm, decision.confirmed)
    _correct(rule, decision, request)
    verdicts = _verdicts(rule, decision, request)
    if decision.snapshot.unconfirmed and not rule.fixed:
        peers = doubtful_peers(rule, decision, request, verdicts)
        if peers:
            decision = inventory.wait_until_shown(peers)
            verdicts = _verdicts(rule, decision, request)
    if loud := _loud(verdicts):
        raise RefusedLoudlyError(loud, decision.confirmed)
    reporting.report_warnings(unit, vm, verdicts, decision.confirmed)
    reporting.report_refusals(unit, vm, verdicts, decision.confirmed)
    reporting.report_age(unit, decision)
    if not all(verdict.accepted for verdict in verdicts) and gives_way(decision.confirmed, request):
        return Aged(hosts, decision.age_seconds)
    accepted = [verdict.host for verdict in verdicts if verdict.accepted]
    if _begins(decision, vm, hosts):
        decision.expect_accepted(unit, decision.confirmed.vm_by_id[vm], accepted)
    return Aged(accepted, decision.age_seconds, _reasons(rule, decision, request, verdicts))


def ranked_hosts(unit: str, hosts: Sequence[str], vm: str, properties: Properties) -> list[tuple[str, int]]:
    """Ask a weight, which counts what is expected. Raises `UnknownVmError`, and what `decision` raises."""
    rule, decision = UNITS[unit], _decision_about(vm)
    snapshot, request = decision.snapshot, _request(rule, hosts, vm, properties)
    weights = rule.weight(snapshot, with_order(rule, snapshot, request)) if rule.weight else ()
    reporting.report_ranks(unit, vm, weights, snapshot)
    reporting.report_age(unit, decision)
    if weights and _begins(decision, vm, hosts):
        ranks = [weight.rank for weight in weights]
        factor = _factor(snapshot, vm, unit)
        decision.expect_ranks(unit, snapshot.vm_by_id[vm], request.candidate_hosts, ranks, factor)
    return Aged(((weight.host, weight.rank) for weight in weights), decision.age_seconds)


def chosen_move(unit: str, hosts: Sequence[str], properties: Properties) -> tuple[str, list[str]]:
    """Ask a balance; no VM and no hosts where there is nothing to do."""
    rule, decision = UNITS[unit], inventory.decision(stays=stays())
    snapshot = decision.snapshot
    asked, given = tuple(hosts), properties or {}
    request = BalanceRequest(asked, given, _overload.minutes(snapshot, asked, given))
    move = rule.balance(snapshot, request) if rule.balance else None
    vm, targets = (move.vm, list(move.hosts)) if move else ("", [])
    return AgedMove(vm, targets, decision.age_seconds)


def _verdicts(rule: Rule, decision: Decision, request: Request) -> tuple[Verdict, ...]:
    if rule.filter is None:
        return ()
    unconfirmed = decision.snapshot.unconfirmed
    if unconfirmed and not rule.fixed:
        request = replace(request, unconfirmed=unconfirmed)
    return rule.filter(decision.confirmed, request)


def _reasons(rule: Rule, decision: Decision, request: Request, verdicts: Sequence[Verdict]) -> bytes:
    """Why hosts are refused, for the proxy's record; a rule that leaves reasons out is asked for them."""
    refused = [verdict for verdict in verdicts if not verdict.accepted]
    if not refused or not records():
        return b""
    if not request.explained and not all(verdict.reasons for verdict in refused):
        refused = [
            verdict
            for verdict in _verdicts(rule, decision, replace(request, explained=True))
            if not verdict.accepted
        ]
    return recorded(refused, decision.confirmed)


def _correct(rule: Rule, decision: Decision, request: Request) -> None:
    """The engine has judged by where VMs really are: take note of what that refutes."""
    if rule.refuted is not None:
        for peer, host in rule.refuted(decision.snapshot, request).items():
            decision.correct(peer, host)


def _factor(snapshot: Snapshot, vm: str, unit: str) -> int:
    """What a weight's ranks are multiplied by in the policy of the VM's cluster."""
    policy = snapshot.cluster_by_id[snapshot.vm_by_id[vm].cluster].scheduling_policy
    return policy.weights.get(unit, 1) if policy else 1


def _request(rule: Rule, hosts: Sequence[str], vm: str, properties: Properties) -> Request:
    given = properties or {}
    reporting.report_complaints(rule, given)
    return Request(
        (vm,),
        tuple(hosts),
        parameters=given,
        as_engine=True,
        explained=reporting.explains(),
        drawn=_drawn(hosts) if rule.draws else (),
    )


def _begins(decision: Decision, vm: str, hosts: Sequence[str]) -> bool:
    """Whether the VM may be on its way after this: not where a person asks.

    Nor where its present host is among those asked about, which the engine never does before a migration.
    """
    return not by_hand() and decision.confirmed.vm_by_id[vm].host not in hosts


def _decision_about(vm: str) -> Decision:
    """What is known of the engine; it is asked once more for a VM that it does not show yet."""
    for missing in (False, True):
        decision = inventory.decision(vm, missing=missing, stays=stays())
        if vm in decision.confirmed.vm_by_id:
            _readiness.used(decision.snapshot)
            return decision
    raise UnknownVmError(vm, decision.awaited)


def _loud(verdicts: Sequence[Verdict]) -> tuple[Reason, ...]:
    """What the administrators are to learn: such a reason speaks against every host."""
    if not verdicts or verdicts[0].accepted:
        return ()
    return tuple(reason for reason in verdicts[0].reasons if reason.kind.loud)


def _drawn(hosts: Sequence[str]) -> tuple[str, ...]:
    """The hosts in an order drawn by lot."""
    lots = memoryview(os.urandom(8 * len(hosts))).cast("Q")
    return tuple(hosts[at] for at in sorted(range(len(hosts)), key=lots.__getitem__))
