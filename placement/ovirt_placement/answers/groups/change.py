"""What becomes of affinity groups: members by words, what differs, what was changed, and what VMs lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final, Literal, NamedTuple

from ovirt_placement.answers.document import DRY_RUN, ChangeDocument, Document, find
from ovirt_placement.answers.groups.listing import DescribedGroup
from ovirt_placement.answers.question import Columns
from ovirt_placement.model import AffinityGroup, AffinityLabel, AffinityRule, Host, Snapshot, Vm
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement.store.enforcer.observations import LostMembership, MembershipKind

# -- The members of an affinity group, by the words that options and files have for them.
#: Of each member list of the model: its option and its word.
MEMBERS: Final = {
    "vms": ("vm", "VM"),
    "hosts": ("host", "host"),
    "vm_labels": ("vm_label", "affinity label"),
    "host_labels": ("host_label", "affinity label"),
}


def find_member(word: str, name: str, cluster: str, snapshot: Snapshot) -> Vm | Host | AffinityLabel:
    """The member that a word means: of the group's own cluster if there is one, else of any."""
    kind = MEMBERS[name][1]
    known = tuple(table_of(name, snapshot).values())
    own = [item for item in known if getattr(item, "cluster", cluster) == cluster]
    in_own = any(word in (item.id, item.name) for item in own)
    found: Vm | Host | AffinityLabel = find(word, kind, own if in_own else known)
    return found


def member_ids(words: Iterable[str], name: str, cluster: str, snapshot: Snapshot) -> tuple[str, ...]:
    """The ids of the members that words mean."""
    return tuple(find_member(word, name, cluster, snapshot).id for word in words)


def table_of(name: str, snapshot: Snapshot) -> dict[str, Any]:
    """All that could be in a member list, by id."""
    if name == "vms":
        return snapshot.vm_by_id
    return snapshot.host_by_id if name == "hosts" else snapshot.label_by_id


MEMBER_WORDS = {"vms": "VM", "hosts": "host", "vm_labels": "VM label", "host_labels": "host label"}


# -- What differs between a group and what is to become of it, each in words, for the record of who did it.
def differences(before: AffinityGroup, after: AffinityGroup, snapshot: Snapshot) -> Iterator[str]:
    """The fields that change, and the members that come and go."""
    if before.name != after.name:
        yield f"name {after.name}"
    if before.priority != after.priority:
        yield f"priority {after.priority:g}"
    for word, was, rule in (
        ("VM", before.vms_rule, after.vms_rule),
        ("host", before.hosts_rule, after.hosts_rule),
    ):
        if was != rule:
            yield f"{word} rule {_rule(rule)}"
    for field, word in MEMBER_WORDS.items():
        old, new, known = getattr(before, field), getattr(after, field), table_of(field, snapshot)
        for done, members, others in (("added", new, old), ("removed", old, new)):
            for one in members:
                if one not in others:
                    yield f"{word} {known[one].name if one in known else one} {done}"


def _rule(rule: AffinityRule) -> str:
    if not rule.enabled:
        return "disabled"
    return f"{'positive' if rule.positive else 'negative'}, {'hard' if rule.enforcing else 'soft'}"


# -- What became of affinity groups: they were added, changed or removed.
Outcome = Literal["added", "changed", "removed", "unchanged"]


class GroupChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="group_change"):
    """An affinity group that was added, changed or removed."""

    #: Null where there was none; one that would be added in a dry run has no id.
    before: DescribedGroup | None
    #: Null where there is none any more.
    after: DescribedGroup | None
    outcome: Outcome
    group: DescribedGroup
    warnings: tuple[str, ...]


class GroupsChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="groups_change"):
    """Affinity groups that were added, changed and removed, by their names."""

    #: The groups that are not the same afterwards.
    before: tuple[DescribedGroup, ...]
    after: tuple[DescribedGroup, ...]
    added: tuple[str, ...]
    edited: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]
    warnings: tuple[str, ...]


class GroupOutcome(NamedTuple):
    """A group as it is now, or was when it was removed, and the same before and afterwards."""

    group: DescribedGroup
    before: DescribedGroup | None
    after: DescribedGroup | None

    @property
    def outcome(self) -> Outcome:
        if self.before == self.after:
            return "unchanged"
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


def group_change(one: GroupOutcome, warnings: Iterable[str], *, dry_run: bool) -> GroupChangeDocument:
    """What was done about a group."""
    return GroupChangeDocument(
        changed=one.before != one.after,
        dry_run=dry_run,
        before=one.before,
        after=one.after,
        outcome=one.outcome,
        group=one.group,
        warnings=tuple(warnings),
    )


def groups_change(
    groups: Sequence[GroupOutcome], warnings: Iterable[str] = (), *, dry_run: bool
) -> GroupsChangeDocument:
    """What was done about groups."""
    touched = [one for one in groups if one.before != one.after]

    def named(outcome: Outcome) -> tuple[str, ...]:
        return tuple(one.group.name for one in groups if one.outcome == outcome)

    return GroupsChangeDocument(
        changed=bool(touched),
        dry_run=dry_run,
        before=tuple(one.before for one in touched if one.before is not None),
        after=tuple(one.after for one in touched if one.after is not None),
        added=named("added"),
        edited=named("changed"),
        removed=named("removed"),
        unchanged=named("unchanged"),
        warnings=tuple(warnings),
    )


def change_text(answer: GroupChangeDocument) -> str:
    """In a line what was done."""
    done = "left as it is:" if answer.outcome == "unchanged" else answer.outcome
    identity = f" ({answer.group.id})" if answer.group.id else ""
    tried = f"\n{DRY_RUN}" if answer.dry_run and answer.changed else ""
    return f"{done} affinity group {answer.group.name}{identity}{tried}"


def change_lines(answer: GroupsChangeDocument) -> Iterator[str]:
    """In a line each what was added, changed and removed."""
    for done, names in (
        ("removed", answer.removed),
        ("added", answer.added),
        ("changed", answer.edited),
    ):
        yield from (f"{done} affinity group {name}" for name in names)
    if not answer.changed:
        yield "Nothing to change."
    elif answer.dry_run:
        yield DRY_RUN


# -- What VMs were members of before they changed their cluster: as data, as a row, and in a sentence.
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


LOSS_COLUMNS: Columns = {
    "VM": lambda one: one.vm.name,
    "former cluster": lambda one: one.cluster.name,
    "groups": lambda one: _lines(one.groups),
    "labels": lambda one: _lines(one.labels),
    "since": lambda one: one.since,
}


def loss_sentence(one: GroupLoss) -> str:
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
