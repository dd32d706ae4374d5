"""Says in the log how units decide: what is wrong always, why each host fares as it does at debug level."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import lru_cache

from ovirt_placement.inventory import Decision
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import host_name, vm_name
from ovirt_placement.rules.rule import Rule
from ovirt_placement.rules.sentences import sentence
from ovirt_placement.rules.verdict import Verdict, Weight
from ovirt_service.saying import Said

_log = logging.getLogger(__name__)
# The old proxy takes any line on standard error for a failure of the unit, and Python prints there
# what no one handles.
logging.getLogger("ovirt_placement").addHandler(logging.NullHandler())


#: A decision on a state older than this is worth a line in the log.
_OLD_SECONDS = 2.0

_said = Said()


def report_age(unit: str, decision: Decision) -> None:
    """Warn, once until it is over, that the engine was too slow to be asked."""
    if decision.age_seconds > _OLD_SECONDS:
        if _said.is_news(unit):
            _log.warning(
                "%s decides on a state of the engine that is %.1f s old: it does not answer in time",
                unit,
                decision.age_seconds,
            )
    elif _said.is_over(unit):
        _log.warning("%s: the engine answers in time again", unit)


def explains() -> bool:
    """Whether anybody will read why a host fares as it does."""
    return _log.isEnabledFor(logging.DEBUG)


def report_notes(rule: Rule, vm: str, snapshot: Snapshot) -> None:
    """Warn of what does not change the answer but should not stay as it is."""
    for note in rule.notes(snapshot, vm):
        _log.warning("%s: VM %s: %s", rule.name, vm_name(vm, snapshot), sentence(note, snapshot))


def report_complaints(rule: Rule, parameters: Mapping[str, str]) -> None:
    """Warn once of parameters that cannot be together."""
    if parameters:
        _complain(rule, tuple(sorted(parameters.items())))


@lru_cache(maxsize=64)
def _complain(rule: Rule, parameters: tuple[tuple[str, str], ...]) -> None:
    for complaint in rule.complaints(dict(parameters)):
        _log.warning("%s: %s", rule.name, complaint)


def report_refusals(unit: str, vm: str, verdicts: Iterable[Verdict], snapshot: Snapshot) -> None:
    """At debug level, say of each refused host why."""
    if explains():
        for verdict in verdicts:
            if not verdict.accepted:
                _report(unit, vm, verdict, "refused", snapshot)


def report_warnings(unit: str, vm: str, verdicts: Iterable[Verdict], snapshot: Snapshot) -> None:
    """Warn of why hosts were accepted that perhaps should not have been."""
    hosts: dict[str, list[str]] = {}
    for verdict in verdicts:
        for reason in verdict.reasons if verdict.accepted else ():
            if reason.kind.warned:
                hosts.setdefault(sentence(reason, snapshot), []).append(verdict.host)
    for why, found in hosts.items():
        _log.warning("%s: VM %s: %d hosts: %s", unit, vm_name(vm, snapshot), len(found), why)


def report_ranks(unit: str, vm: str, weights: Iterable[Weight], snapshot: Snapshot) -> None:
    """At debug level, say of each host how it ranks and why."""
    if explains():
        for weight in weights:
            _report(unit, vm, weight, f"rank {weight.rank}", snapshot)


def _report(unit: str, vm: str, found: Verdict | Weight, outcome: str, snapshot: Snapshot) -> None:
    why = "; ".join(sentence(reason, snapshot) for reason in found.reasons)
    where = host_name(found.host, snapshot)
    _log.debug("%s: VM %s: host %s %s: %s", unit, vm_name(vm, snapshot), where, outcome, why)
