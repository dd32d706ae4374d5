"""How far maintenance runs are: which hosts are done, and what the one that has its turn waits for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from ovirt_placement.answers.document import ChangeDocument, Document
from ovirt_placement.answers.durations import duration_text
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement.store.maintenance_run import (
    ENDED,
    HostPhase,
    HostProgress,
    MaintenanceRun,
    RunState,
    Work,
)

#: In words, of a host.
PHASES = {
    HostPhase.WAITING: "waits",
    HostPhase.DRAINING: "is being emptied",
    HostPhase.DEACTIVATING: "goes into maintenance",
    HostPhase.WORKING: "is in maintenance",
    HostPhase.ACTIVATING: "comes up",
    HostPhase.CHECKING: "is up and looked at",
    HostPhase.DONE: "is done",
    HostPhase.SKIPPED: "is left out",
    HostPhase.FAILED: "has failed",
}

#: Those in which it is reported for how long.
_AT_WORK = set(HostPhase) - {HostPhase.WAITING, *ENDED}


class MaintenanceHost(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One host of a run."""

    host: Named
    phase: HostPhase
    #: How long ago that began.
    phase_seconds: float
    #: What it waits for, or how it ended; empty if there is nothing to say.
    message: str
    #: Whether nobody sends VMs there.
    draining: bool
    #: How many VMs ran there when it was marked, and ids of those that were stopped for it.
    vms: int
    stopped_vms: tuple[str, ...]


class MaintenanceRunRecord(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One run."""

    id: str
    cluster: Named
    state: RunState
    work: Work
    requested_by: str
    #: ISO 8601, in UTC.
    requested_at: str
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
    """These runs of the store as an answer."""
    return MaintenanceRunsDocument(runs=tuple(map(_run, runs)))


def runs_change(
    before: MaintenanceRun | None, after: MaintenanceRun, *, dry_run: bool
) -> MaintenanceChangeDocument:
    """What an order makes of a run."""
    was = None if before is None else _run(before)
    return MaintenanceChangeDocument(changed=True, dry_run=dry_run, before=was, after=_run(after))


def run_lines(run: MaintenanceRunRecord) -> Iterator[str]:
    """One run as a person reads it."""
    words = f": {run.message}" if run.message else ""
    yield (
        f"Maintenance run {run.id} of cluster {run.cluster.name}: {run.state}{words}"
        f" (by {run.requested_by}, {run.requested_at})"
    )
    for host in run.hosts:
        count = len(host.stopped_vms)
        stopped = f"; {count} VM{'s were' if count > 1 else ' was'} stopped for it" if count else ""
        message = f": {host.message}" if host.message else ""
        since = f", for {duration_text(host.phase_seconds)}" if host.phase in _AT_WORK else ""
        yield f"  {host.host.name} {PHASES[host.phase]}{since}{message}{stopped}"
        if host.draining:
            yield f"    {host.host.name} is marked as draining: no VM is placed there"


def _run(run: MaintenanceRun) -> MaintenanceRunRecord:
    return MaintenanceRunRecord(
        id=run.id,
        cluster=Named(run.cluster, run.cluster_name),
        state=run.state,
        work=run.request.work,
        requested_by=run.requested_by,
        requested_at=datetime.fromtimestamp(run.created, UTC).isoformat(" ", "minutes"),
        message=run.message,
        hosts=tuple(map(_host, run.hosts)),
    )


def _host(host: HostProgress) -> MaintenanceHost:
    return MaintenanceHost(
        host=Named(host.host, host.name),
        phase=host.phase,
        phase_seconds=round(host.seconds, 1),
        message=host.message,
        draining=host.draining,
        vms=len(host.vms),
        stopped_vms=host.stopped,
    )
