"""What is said of a decision: for the caller's log, and in ids for the proxy's record."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from ovirt_placement.inventory.decision import Decision
from ovirt_placement.inventory.protocol import Decide
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import group_name, host_name, vm_name
from ovirt_placement.rules.elements.rule import Rule
from ovirt_placement.rules.elements.verdict import Reason, Verdict, Weight, sentence
from ovirt_service.log import Said

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


class Reporting:
    """What was said in the decisions before, for all threads."""

    def __init__(self) -> None:
        #: Of units that decided on an old state; of units and parameters that cannot be together.
        self.old, self.complained = Said(), Said()


@dataclass
class Report:
    """The lines of one decision for its caller: level and text."""

    _before: Reporting
    _question: Decide
    lines: list[tuple[int, str]] = field(default_factory=list)

    def age(self, decision: Decision) -> None:
        """Warn, once until it is over, that the engine was too slow to be asked."""
        unit = self._question.unit
        if decision.age_seconds > _OLD_SECONDS:
            if self._before.old.is_news(unit):
                self._warn(
                    f"the state of the engine is {decision.age_seconds:.1f} s old: it does not answer in time"
                )
        elif self._before.old.is_over(unit):
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
        if parameters and self._before.complained.is_news(asked):
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
