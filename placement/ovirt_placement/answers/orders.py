"""The enforcer's work as the store has it: approvals, pauses, maintenance runs, lost memberships."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import groupby
from typing import Annotated

from ovirt_placement.answers.document import ChangeDocument, Columns, Document, duration_text
from ovirt_placement.model import NO_STATE
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import From, Record, with_names
from ovirt_placement.store.enforcer.maintenance import ENDED, HostPhase, MaintenanceRun, RunState, Work
from ovirt_placement.store.enforcer.observations import LostMembership, MembershipKind
from ovirt_placement.store.orders import Approval, Pause, WaitingPlan


# -- Which plans were approved.
class ApprovedPlan(Record, frozen=True, omit_defaults=False):
    """The plan that was approved of last in a cluster, given by its id."""

    cluster: str
    plan: str


class ApprovalChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="approval_change"):
    """What was approved of in these clusters before and afterwards, which lasts from then."""

    before: tuple[ApprovedPlan, ...]
    after: tuple[ApprovedPlan, ...]
    #: The plans as an administrator reads them.
    text: str


def approval_change(
    before: Iterable[Approval], plans: Mapping[str, str], text: str, dry_run: bool
) -> ApprovalChangeDocument:
    return ApprovalChangeDocument(
        changed=bool(plans),
        dry_run=dry_run,
        before=tuple(ApprovedPlan(one.cluster, one.plan) for one in before if one.cluster in plans),
        after=tuple(ApprovedPlan(cluster, plan) for cluster, plan in plans.items()),
        text=text,
    )


class RefusalChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="refusal_change"):
    """The plan that waited in a cluster, and waits no more: null afterwards."""

    before: ApprovedPlan
    after: None
    #: The plan as an administrator reads it.
    text: str


def refusal_change(refused: WaitingPlan, dry_run: bool) -> RefusalChangeDocument:
    return RefusalChangeDocument(
        changed=True,
        dry_run=dry_run,
        before=ApprovedPlan(refused.cluster, refused.plan),
        after=None,
        text=refused.text,
    )


# -- Which pauses were set, or ended.
class PausesChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="pauses_change"):
    """The pauses in force before and afterwards; in a dry run one that would be set begins at 0."""

    before: tuple[Pause, ...]
    after: tuple[Pause, ...]


# -- What was made of the store: begun again, or restored from a backup.
class StoreContent(Record, frozen=True, omit_defaults=False):
    """What a store holds, of all engines."""

    rows: int


class StoreChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="store_change"):
    """The store before and afterwards; null where there is none."""

    #: Its URL, without a password.
    store: str
    before: StoreContent | None
    after: StoreContent | None


# -- How far maintenance runs are: which hosts are done, and what the one that has its turn waits for.
#: Those in which it is reported for how long.
_AT_WORK = set(HostPhase) - {HostPhase.WAITING, *ENDED}


class MaintenanceHost(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One host of a run."""

    host: Annotated[Named, From(lambda one, _: Named(one.host, one.name))]
    phase: HostPhase
    #: How long ago that began.
    phase_seconds: Annotated[float, From(lambda one, _: round(one.seconds, 1))]
    #: What it waits for, or how it ended; empty if there is nothing to say.
    message: str
    #: Whether no VMs are placed there.
    draining: bool
    #: How many VMs ran there when it was marked, and ids of those that were stopped for it.
    vms: Annotated[int, From(lambda one, _: len(one.vms))]
    stopped_vms: Annotated[tuple[str, ...], From("stopped")]


class MaintenanceRunRecord(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One run."""

    id: str
    cluster: Annotated[Named, From(lambda run, _: Named(run.cluster, run.cluster_name))]
    state: RunState
    work: Annotated[Work, From("request.work")]
    requested_by: str
    #: ISO 8601, in UTC.
    requested_at: Annotated[
        str, From(lambda run, _: datetime.fromtimestamp(run.created, UTC).isoformat(" ", "minutes"))
    ]
    #: How it ended; empty while it is under way.
    message: str
    hosts: tuple[MaintenanceHost, ...]


class MaintenanceRunsDocument(Document, frozen=True, kw_only=True, tag="maintenance_runs"):
    """How far maintenance runs are."""

    runs: tuple[MaintenanceRunRecord, ...]


class MaintenanceChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="maintenance_change"):
    """A run before and afterwards; null where there is none. One that is but tried has no id."""

    before: MaintenanceRunRecord | None
    after: MaintenanceRunRecord | None


def runs_document(runs: Iterable[MaintenanceRun]) -> MaintenanceRunsDocument:
    return MaintenanceRunsDocument(runs=tuple(map(_run_record, runs)))


def runs_change(
    before: MaintenanceRun | None, after: MaintenanceRun, *, dry_run: bool
) -> MaintenanceChangeDocument:
    was = None if before is None else _run_record(before)
    return MaintenanceChangeDocument(changed=True, dry_run=dry_run, before=was, after=_run_record(after))


def run_lines(run: MaintenanceRunRecord, *, timed: bool = True) -> Iterator[str]:
    """One run as a person reads it; unless `timed`, without how long a host is in its phase."""
    words = f": {run.message}" if run.message else ""
    yield (
        f"Maintenance run {run.id} of cluster {run.cluster.name}: {run.state}{words}"
        f" (by {run.requested_by}, {run.requested_at})"
    )
    for host in run.hosts:
        count = len(host.stopped_vms)
        stopped = f"; {count} VM{'s were' if count > 1 else ' was'} stopped for it" if count else ""
        message = f": {host.message}" if host.message else ""
        since = f", for {duration_text(host.phase_seconds)}" if timed and host.phase in _AT_WORK else ""
        yield f"  {host.host.name} {host.phase.text}{since}{message}{stopped}"
        if host.draining:
            yield f"    {host.host.name} is marked as draining: no VM is placed there"


def _run_record(run: MaintenanceRun) -> MaintenanceRunRecord:
    return with_names(MaintenanceRunRecord, run, NO_STATE)


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


def loss_sentence(loss: GroupLoss) -> str:
    """For the log, and for the engine's events."""
    parts = [
        f"affinity {word}{'s' if len(named) > 1 else ''} {', '.join(each.name for each in named)}"
        for word, named in (("group", loss.groups), ("label", loss.labels))
        if named
    ]
    return (
        f"VM {loss.vm.name} left cluster {loss.cluster.name}, and the engine took it out of"
        f" {' and '.join(parts)}; see: ovirt-placement groups lost"
    )


def _of_kind(kind: MembershipKind, entries: Iterable[LostMembership]) -> tuple[Named, ...]:
    found = (Named(entry.id, entry.name) for entry in entries if entry.kind is kind)
    return tuple(sorted(found, key=lambda named: (named.name, named.id)))


def _lines(named: Iterable[Named]) -> str:
    return "\n".join(f"{each.name} ({each.id})" for each in named)
