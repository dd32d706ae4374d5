"""What VMs were members of before they changed their cluster: as data, as a row, and in a sentence."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import groupby

from ovirt_placement.answers.document import ChangeDocument, Document
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement.store.memberships import LostMembership, MembershipKind

HEADERS = ("VM", "former cluster", "groups", "labels", "since")


class GroupLoss(Record, frozen=True):
    """All that a VM lost with one change of its cluster, and has not regained; names as they were then."""

    vm: Named
    #: The one that it left.
    cluster: Named
    #: When that was noticed: ISO 8601, in UTC.
    since: str
    groups: tuple[Named, ...]
    labels: tuple[Named, ...]


class GroupsLostDocument(Document, frozen=True, kw_only=True, tag="groups_lost"):
    """What VMs were members of before they changed their cluster."""

    losses: tuple[GroupLoss, ...]


class GroupsForgottenDocument(ChangeDocument, frozen=True, kw_only=True, tag="groups_forgotten"):
    """What a VM had lost, and is forgotten."""

    before: tuple[GroupLoss, ...]
    after: tuple[GroupLoss, ...]


def groups_lost(entries: Iterable[LostMembership]) -> GroupsLostDocument:
    """What is lost by these entries of the store."""
    return GroupsLostDocument(losses=losses(entries))


def losses(entries: Iterable[LostMembership]) -> tuple[GroupLoss, ...]:
    """Put together what was lost at once; the oldest first."""

    def when(entry: LostMembership) -> tuple[float, str, str]:
        return entry.since, entry.vm, entry.cluster

    return tuple(loss(tuple(found)) for _, found in groupby(sorted(entries, key=when), when))


def loss(entries: tuple[LostMembership, ...]) -> GroupLoss:
    """Put together entries of one VM, one cluster and one moment."""
    first = entries[0]
    return GroupLoss(
        vm=Named(first.vm, first.vm_name),
        cluster=Named(first.cluster, first.cluster_name),
        since=datetime.fromtimestamp(first.since, UTC).isoformat(timespec="seconds"),
        groups=_of_kind(MembershipKind.GROUP, entries),
        labels=_of_kind(MembershipKind.LABEL, entries),
    )


def rows(answer: GroupsLostDocument) -> list[tuple[str, ...]]:
    """VM, former cluster, groups, labels, since when."""
    return [
        (one.vm.name, one.cluster.name, _lines(one.groups), _lines(one.labels), one.since)
        for one in answer.losses
    ]


def sentence(one: GroupLoss) -> str:
    """For the log, and for the engine's events."""
    parts = [
        f"affinity {word}{'s' if len(named) > 1 else ''} {', '.join(each.name for each in named)}"
        for word, named in (("group", one.groups), ("label", one.labels))
        if named
    ]
    return (
        f"VM {one.vm.name} left cluster {one.cluster.name}, and the engine took it out of"
        f" {' and '.join(parts)}; see: ovirt-placement groups lost"
    )


def _of_kind(kind: MembershipKind, entries: Iterable[LostMembership]) -> tuple[Named, ...]:
    found = (Named(entry.id, entry.name) for entry in entries if entry.kind is kind)
    return tuple(sorted(found, key=lambda named: (named.name, named.id)))


def _lines(named: Iterable[Named]) -> str:
    return "\n".join(f"{each.name} ({each.id})" for each in named)
