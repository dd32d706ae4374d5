"""What is said of a decision: for the caller's log, and in ids for the proxy's record."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

import msgspec

from ovirt_placement.inventory.decision import Decision
from ovirt_placement.inventory.protocol import Decide
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import group_name, host_name, vm_name
from ovirt_placement.rules.rule import Rule
from ovirt_placement.rules.verdict import Reason, Verdict, Weight, sentence
from ovirt_service.saying import Said

#: Names are recorded of this many VMs and groups at most; the reader of the record knows the others.
_MOST_NAMES: Final = 64

#: The number of its kind, then what `Reason` has, in its order.
RecordedReason = tuple[int, str | None, str | None, str | None, float | None, str | None, str | None]


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
        return number, reason.group, reason.vm, reason.host, reason.number, reason.unit, reason.status

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
#: Of this many sets of parameters that cannot be together it is remembered that this was said.
_MOST_COMPLAINTS = 64


class Reporting:
    """What was said in the decisions before, for all threads."""

    def __init__(self) -> None:
        self._said = Said()
        self._lock = threading.Lock()
        self._complained: dict[tuple[str, frozenset[tuple[str, str]]], None] = {}

    def begin(self, question: Decide) -> Report:
        """The report of one decision."""
        return Report(self, question)

    def is_old(self, unit: str) -> bool:
        """Whether it is news that a unit decides on an old state."""
        return self._said.is_news(unit)

    def is_young(self, unit: str) -> bool:
        """Whether it is news that it does so no more."""
        return self._said.is_over(unit)

    def is_first(self, unit: str, parameters: Mapping[str, str]) -> bool:
        """Whether these parameters are new."""
        asked = (unit, frozenset(parameters.items()))
        with self._lock:
            known = asked in self._complained
            self._complained[asked] = None
            if len(self._complained) > _MOST_COMPLAINTS:
                del self._complained[next(iter(self._complained))]
        return not known


@dataclass
class Report:
    """The lines of one decision: level and text."""

    _reporting: Reporting
    _question: Decide
    lines: list[tuple[int, str]] = field(default_factory=list)

    def age(self, decision: Decision) -> None:
        """Warn, once until it is over, that the engine was too slow to be asked."""
        unit = self._question.unit
        if decision.age_seconds > _OLD_SECONDS:
            if self._reporting.is_old(unit):
                self._warn(
                    f"{unit} decides on a state of the engine that is {decision.age_seconds:.1f} s old:"
                    " it does not answer in time"
                )
        elif self._reporting.is_young(unit):
            self._warn(f"{unit}: the engine answers in time again")

    def notes(self, rule: Rule, vm: str, snapshot: Snapshot) -> None:
        """Warn of what does not change the answer but should not stay as it is."""
        for note in rule.notes(snapshot, vm):
            self._warn(f"{rule.name}: VM {vm_name(vm, snapshot)}: {sentence(note, snapshot)}")

    def complaints(self, rule: Rule, parameters: Mapping[str, str]) -> None:
        """Warn once of parameters that cannot be together."""
        if parameters and self._reporting.is_first(rule.name, parameters):
            for complaint in rule.complaints(dict(parameters)):
                self._warn(f"{rule.name}: {complaint}")

    def refusals(self, vm: str, verdicts: Iterable[Verdict], snapshot: Snapshot) -> None:
        """At debug level, say of each refused host why."""
        if self._question.explains:
            for verdict in verdicts:
                if not verdict.accepted:
                    self._explain(vm, verdict, "refused", snapshot)

    def warnings(self, vm: str, verdicts: Iterable[Verdict], snapshot: Snapshot) -> None:
        """Warn of why hosts were accepted that perhaps should not have been."""
        hosts: dict[str, list[str]] = {}
        for verdict in verdicts:
            for reason in verdict.reasons if verdict.accepted else ():
                if reason.kind.warned:
                    hosts.setdefault(sentence(reason, snapshot), []).append(verdict.host)
        for why, found in hosts.items():
            self._warn(f"{self._question.unit}: VM {vm_name(vm, snapshot)}: {len(found)} hosts: {why}")

    def ranks(self, vm: str, weights: Iterable[Weight], snapshot: Snapshot) -> None:
        """At debug level, say of each host how it ranks and why."""
        if self._question.explains:
            for weight in weights:
                self._explain(vm, weight, f"rank {weight.rank}", snapshot)

    def _warn(self, text: str) -> None:
        self.lines.append((logging.WARNING, text))

    def _explain(self, vm: str, found: Verdict | Weight, outcome: str, snapshot: Snapshot) -> None:
        why = "; ".join(sentence(reason, snapshot) for reason in found.reasons)
        where, name = host_name(found.host, snapshot), vm_name(vm, snapshot)
        self.lines.append((logging.DEBUG, f"{self._question.unit}: VM {name}: host {where} {outcome}: {why}"))
