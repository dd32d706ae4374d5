"""Remembers rolling maintenance: what was requested, and how far each host is, so that any process goes on.

A person requests, pauses, resumes and stops; the leading enforcer alone carries out. One run at a time is
under way in a cluster. The hosts that are marked as draining are published with placement keys.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

import msgspec
from sqlalchemy import ColumnElement

from ovirt_placement.model.infrastructure import Return
from ovirt_placement.store.placement_rules import revise
from ovirt_placement.store.sql.access import EngineRows, StoreAccess, age, hold_back_writers, now
from ovirt_placement.store.sql.schema import maintenance_hosts, maintenance_runs
from ovirt_placement.store.user_actions import Act, UserActionKind, record
from ovirt_service.errors import UserError

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
    hosts: tuple[HostProgress, ...] = ()

    @property
    def active(self) -> bool:
        """Whether it is under way."""
        return self.state in ACTIVE


_ORDERS: Final = {
    RunState.PAUSED: UserActionKind.MAINTENANCE_PAUSE,
    RunState.RUNNING: UserActionKind.MAINTENANCE_RESUME,
    RunState.STOPPING: UserActionKind.MAINTENANCE_STOP,
}


class UnderWay(UserError):
    """The cluster has a run already; the text says which, and by whom."""


class MaintenanceStore(StoreAccess):
    """The maintenance runs of one engine, in a database."""

    def request(
        self,
        run_id: str,
        cluster: tuple[str, str],
        hosts: Iterable[tuple[str, str]],
        request: MaintenanceRequest,
        *,
        requested_by: str,
        violated: Sequence[str] = (),
    ) -> None:
        """Begin a run of hosts, each with its name, in this order; `cluster` is an id and a name.

        Raises `UnderWay` if a run is under way in the cluster: two administrators do not get two.
        """
        with self._transaction() as rows:
            hold_back_writers(rows)
            revise(rows)  # one after the other, also where no enforcer has a lease yet
            here = maintenance_runs.c.cluster == cluster[0]
            for found in _runs(rows, here, _in_states(ACTIVE)):
                raise UnderWay(
                    f"maintenance run {found.id} by {found.requested_by} is under way in cluster"
                    f" {found.cluster_name}: ovirt-enforcer maintenance status"
                )
            values = {
                "id": run_id,
                "cluster": cluster[0],
                "cluster_name": cluster[1],
                "state": RunState.RUNNING.value,
                "request": msgspec.to_builtins(request),
                "requested_by": requested_by,
                "message": "",
                "violated": list(violated),
            }
            rows.add(maintenance_runs, {**values, "created": now(), "updated": now()})
            named = tuple(hosts)
            first = {"phase": HostPhase.WAITING.value, "message": "", "draining": False}
            for position, (host, name) in enumerate(named):
                at = {"run": run_id, "host": host, "name": name, "position": position, "since": now()}
                rows.add(maintenance_hosts, {**at, **first, "vms": [], "stopped": []})
            act = Act(
                kind=UserActionKind.MAINTENANCE,
                login=requested_by,
                cluster=cluster[0],
                cluster_name=cluster[1],
                subject=run_id,
                details=tuple(name for _, name in named),
            )
            record(rows, act)

    def runs(self) -> tuple[MaintenanceRun, ...]:
        """List all runs, the latest first."""
        with self._reading() as rows:
            return _runs(rows)

    def active(self) -> tuple[MaintenanceRun, ...]:
        """List the runs that are under way."""
        with self._reading() as rows:
            return _runs(rows, _in_states(ACTIVE))

    def active_ids(self) -> tuple[str, ...]:
        """List the ids of the runs that are under way."""
        with self._reading() as rows:
            query = rows.select(maintenance_runs, maintenance_runs.c.id).where(_in_states(ACTIVE))
            return tuple(rows.execute(query).scalars())

    def order(self, run_id: str, state: RunState, *, after: Sequence[RunState], set_by: str) -> bool:
        """Have a run paused, resumed or stopped if it is in one of these states; whether it was."""
        with self._transaction() as rows:
            here = (maintenance_runs.c.id == run_id, _in_states(after))
            if rows.change(maintenance_runs, *here, state=state.value, updated=now()) != 1:
                return False
            (run,) = _runs(rows, maintenance_runs.c.id == run_id)
            act = Act(kind=_ORDERS[state], login=set_by, cluster=run.cluster, cluster_name=run.cluster_name)
            record(rows, msgspec.structs.replace(act, subject=run_id))
            return True

    def end(self, run_id: str, state: RunState, message: str) -> None:
        """End a run: no host is marked any more. As `enter` it is the leader's: raises `LeaseLost`."""
        with self._leading() as rows:
            revise(rows)
            run = maintenance_runs.c.id == run_id
            rows.change(maintenance_runs, run, state=state.value, message=message, updated=now())
            rows.change(maintenance_hosts, maintenance_hosts.c.run == run_id, draining=False)

    def enter(
        self, run_id: str, host: str, phase: HostPhase, message: str = "", **changes: bool | Sequence[str]
    ) -> None:
        """Let a host enter a phase, with changes of `draining`, `vms` and `stopped`, in one transaction."""
        values = {"phase": phase.value, "since": now(), "message": message, **changes}
        with self._leading() as rows:
            if "draining" in changes:
                revise(rows)
            rows.change(maintenance_hosts, *_host_of_run(run_id, host), **values)

    def note(self, run_id: str, host: str, message: str) -> None:
        """Write down what a host waits for."""
        with self._leading() as rows:
            rows.change(maintenance_hosts, *_host_of_run(run_id, host), message=message)

    def say(self, run_id: str, message: str) -> None:
        """Write down what a run waits for besides its hosts."""
        with self._leading() as rows:
            rows.change(maintenance_runs, maintenance_runs.c.id == run_id, message=message)

    def mark_stopped(self, run_id: str, host: str, vms: Sequence[str]) -> None:
        """Write down which VMs are stopped for a host, before any of them is."""
        with self._leading() as rows:
            rows.change(maintenance_hosts, *_host_of_run(run_id, host), stopped=list(vms))


def draining_hosts(rows: EngineRows) -> tuple[str, ...]:
    """Give the ids of the hosts that are marked, in order."""
    table = maintenance_hosts
    found = rows.execute(rows.select(table, table.c.host).where(table.c.draining).order_by(table.c.host))
    return tuple(found.scalars())


def _host_of_run(run_id: str, host: str) -> tuple[ColumnElement[bool], ...]:
    return maintenance_hosts.c.run == run_id, maintenance_hosts.c.host == host


def _in_states(states: Iterable[RunState]) -> ColumnElement[bool]:
    return maintenance_runs.c.state.in_([state.value for state in states])


def _runs(rows: EngineRows, *conditions: ColumnElement[bool]) -> tuple[MaintenanceRun, ...]:
    order = (maintenance_runs.c.created.desc(), maintenance_runs.c.id)
    columns = (*maintenance_runs.columns, age(maintenance_runs.c.created))
    query = rows.select(maintenance_runs, *columns).where(*conditions).order_by(*order)
    found = rows.records(MaintenanceRun, query)
    table = maintenance_hosts
    progress = rows.select(table, *table.columns, age(table.c.since, "seconds")).order_by(table.c.position)
    hosts = rows.records_by(table.c.run, [run.id for run in found], HostProgress, progress)
    return tuple(msgspec.structs.replace(run, hosts=tuple(hosts.get(run.id, ()))) for run in found)
