"""Takes the engine's questions to the rules, and the rules' answers back as ids and ranks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from ovirt_placement import inventory
from ovirt_placement.answers.sentences import sentence
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.reasons import Reason
from ovirt_placement.rules.rule import Rule
from ovirt_placement.rules.verdict import BalanceRequest, Request, Verdict
from ovirt_placement.units import telling
from ovirt_placement.units.overload import Overload
from ovirt_placement.units.readiness import Readiness

#: The cluster's scheduling properties, as the engine hands them to every unit; None for none at all.
Properties = Mapping[str, str] | None

_readiness = Readiness()
_overload = Overload()


class UnknownVmError(LookupError):
    """The engine asks about a VM that it does not list itself."""

    def __init__(self, vm: str) -> None:
        super().__init__(
            f"the engine lists no VM {vm}: is this the engine that asks, and may our user see it?"
        )


class RefusedLoudlyError(LookupError):
    """A rule refuses every host for a reason that the engine's administrators are to be told."""

    #: Tells the proxy that this is the filter's answer: no host, and the reason.
    refuses = True

    def __init__(self, reasons: Sequence[Reason], snapshot: Snapshot) -> None:
        super().__init__("; ".join(sentence(reason, snapshot) for reason in reasons))


def parameters(unit: str) -> str:
    """The parameters that the engine offers for a unit."""
    return UNITS[unit].parameters


def accepted_hosts(unit: str, hosts: Sequence[str], vm: str, properties: Properties) -> list[str]:
    """Ask a filter. Raises `RefusedLoudlyError`, `UnknownVmError`, and what `inventory.snapshot` raises."""
    rule, snapshot = UNITS[unit], _snapshot_with(vm)
    request = _request(rule, hosts, vm, properties)
    telling.tell_notes(rule, vm, snapshot)
    verdicts = rule.filter(snapshot, request) if rule.filter else ()
    if loud := _loud(verdicts):
        raise RefusedLoudlyError(loud, snapshot)
    telling.tell_refusals(unit, vm, verdicts, snapshot)
    accepted = [verdict.host for verdict in verdicts if verdict.accepted]
    inventory.expect_of_accepted(unit, snapshot.vm_by_id[vm], accepted)
    return accepted


def ranked_hosts(unit: str, hosts: Sequence[str], vm: str, properties: Properties) -> list[tuple[str, int]]:
    """Ask a weight. Raises `UnknownVmError`, and what `inventory.snapshot` raises."""
    rule, snapshot = UNITS[unit], _snapshot_with(vm)
    request = _request(rule, hosts, vm, properties)
    weights = rule.weight(snapshot, request) if rule.weight else ()
    telling.tell_ranks(unit, vm, weights, snapshot)
    if weights:
        ranks = [weight.rank for weight in weights]
        factor = _factor(snapshot, vm, unit)
        inventory.expect_of_ranks(unit, snapshot.vm_by_id[vm], request.candidate_hosts, ranks, factor)
    return [(weight.host, weight.rank) for weight in weights]


def chosen_move(unit: str, hosts: Sequence[str], properties: Properties) -> tuple[str, list[str]]:
    """Ask a balance; no VM and no hosts where there is nothing to do."""
    rule, snapshot = UNITS[unit], inventory.snapshot()
    asked, given = tuple(hosts), properties or {}
    request = BalanceRequest(asked, given, _overload.minutes(snapshot, asked, given))
    move = rule.balance(snapshot, request) if rule.balance else None
    return (move.vm, list(move.hosts)) if move else ("", [])


def _factor(snapshot: Snapshot, vm: str, unit: str) -> int:
    """What a weight's ranks are multiplied by in the policy of the VM's cluster."""
    policy = snapshot.cluster_by_id[snapshot.vm_by_id[vm].cluster].scheduling_policy
    return policy.weights.get(unit, 1) if policy else 1


def _request(rule: Rule, hosts: Sequence[str], vm: str, properties: Properties) -> Request:
    given = properties or {}
    telling.tell_complaints(rule, given)
    return Request(
        (vm,),
        tuple(hosts),
        parameters=given,
        as_engine=True,
        explained=telling.explains(),
        drawn=_drawn(hosts) if rule.draws else (),
    )


def _snapshot_with(vm: str) -> Snapshot:
    """The engine's state; the engine is asked once more for a VM that it does not show yet."""
    for asked in (None, vm):
        snapshot = inventory.snapshot(vm=asked)
        if vm in snapshot.vm_by_id:
            _readiness.used(snapshot)
            return snapshot
    raise UnknownVmError(vm)


def _loud(verdicts: Sequence[Verdict]) -> tuple[Reason, ...]:
    """What the administrators are to be told: such a reason speaks against every host."""
    if not verdicts or verdicts[0].accepted:
        return ()
    return tuple(reason for reason in verdicts[0].reasons if reason.kind.loud)


def _drawn(hosts: Sequence[str]) -> tuple[str, ...]:
    """The hosts in an order drawn by lot."""
    lots = memoryview(os.urandom(8 * len(hosts))).cast("Q")
    return tuple(hosts[at] for at in sorted(range(len(hosts)), key=lots.__getitem__))
