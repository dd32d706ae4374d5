"""Writes why a filter dropped hosts for the proxy's record: in ids, which costs a decision least."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec

from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import group_name, vm_name
from ovirt_placement.rules.reasons import Reason
from ovirt_placement.rules.verdict import Verdict

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


def recorded(verdicts: Sequence[Verdict], snapshot: Snapshot) -> bytes:
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
        return b""
    return msgspec.json.encode(
        RecordedReasons(
            kinds=tuple(sentences.items()),
            vms={vm: vm_name(vm, snapshot) for vm in islice(vms, _MOST_NAMES)},
            groups={group: group_name(group, snapshot) for group in islice(groups, _MOST_NAMES)},
            hosts=hosts,
        )
    )
