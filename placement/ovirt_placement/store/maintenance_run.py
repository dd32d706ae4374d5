"""A rolling maintenance as it is remembered: what was requested, and how far each host is."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

import msgspec

from ovirt_placement.model.maintenance import Return

#: What the correlation id of a cluster's upgrade begins with that is a run; the id of the run follows.
UPGRADE_OF_RUN: Final = "maintenance-"


def upgrade_id(run_id: str) -> str:
    """The correlation id by which the engine knows the upgrade that a run is."""
    return f"{UPGRADE_OF_RUN}{run_id}"


class RunState(StrEnum):
    """How a run stands."""

    RUNNING = "running"
    #: No further step begins until a user resumes it.
    PAUSED = "paused"
    #: A user wants it to end: what is under way ends, and nothing new begins.
    STOPPING = "stopping"
    STOPPED = "stopped"
    DONE = "done"
    FAILED = "failed"


#: Those of a run that is under way.
ACTIVE: Final = (RunState.RUNNING, RunState.PAUSED, RunState.STOPPING)


class HostPhase(StrEnum):
    """How far a host is."""

    WAITING = "waiting"
    #: Its VMs are migrated away, and no others are placed there.
    DRAINING = "draining"
    #: It is empty, and the engine takes it into maintenance.
    DEACTIVATING = "deactivating"
    #: It is in maintenance and is upgraded, or a command does what is to be done.
    WORKING = "working"
    ACTIVATING = "activating"
    #: It is up, and is looked at until the soak time is over.
    CHECKING = "checking"
    DONE = "done"
    #: There was nothing to do.
    SKIPPED = "skipped"
    FAILED = "failed"


#: Those after which a host is left alone.
ENDED: Final = (HostPhase.DONE, HostPhase.SKIPPED, HostPhase.FAILED)


class Work(StrEnum):
    """What is done with a host in maintenance."""

    UPGRADE = "upgrade"
    #: The configured command is run.
    COMMAND = "command"
    NOTHING = "nothing"


class MaintenanceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a user asks for."""

    work: Work = Work.UPGRADE
    #: Ids of VMs that may be stopped where they cannot migrate; they are started again on their host.
    stop_vms: tuple[str, ...] = ()
    soak_seconds: float = 60.0
    #: This many hosts may fail, and be up again, before the run ends.
    failures: int = 0
    reboot: bool = True
    #: Which VMs go back to their hosts once all hosts are done.
    back: Return = Return.NONE


class HostProgress(msgspec.Struct, frozen=True, kw_only=True):
    """One host of a run."""

    host: str
    name: str
    position: int
    phase: HostPhase
    #: Seconds since the phase began, by the database's clock.
    seconds: float
    #: What it waits for, or how it ended.
    message: str = ""
    #: Whether it is marked: no VMs are placed there.
    draining: bool = False
    #: The VMs that ran there when it was marked.
    vms: tuple[str, ...] = ()
    #: Those that were stopped for it, and are to be started again.
    stopped: tuple[str, ...] = ()


class MaintenanceRun(msgspec.Struct, frozen=True, kw_only=True):
    """One rolling maintenance of hosts of a cluster, in their order."""

    id: str
    cluster: str
    cluster_name: str
    state: RunState
    request: MaintenanceRequest
    requested_by: str
    #: Seconds since the epoch, by the database's clock.
    created: float
    updated: float
    #: Seconds since it began, when this was read.
    age_seconds: float
    message: str
    #: Keys of the rules that were violated when it began: these are none of its making.
    violated: tuple[str, ...]
    hosts: tuple[HostProgress, ...]

    @property
    def active(self) -> bool:
        """Whether it is under way."""
        return self.state in ACTIVE
