"""Remembers rolling maintenance: what was requested, and how far each host is, so that any process goes on.

A person requests, pauses, resumes and stops; the leading enforcer alone carries out. One run at a time is
under way in a cluster. The hosts that are marked as draining are published with placement keys.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple, Self

import msgspec
from msgspec.structs import replace
from sqlalchemy import ColumnElement

from ovirt_placement.model.infrastructure import Return
from ovirt_placement.model.record import Worded
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


class HostPhase(Worded):
    """How far a host is."""

    WAITING = "waiting", "waits"
    #: Its VMs are migrated away, and no others are placed there.
    DRAINING = "draining", "is being emptied"
    #: It is empty, and the engine takes it into maintenance.
    DEACTIVATING = "deactivating", "goes into maintenance"
    #: It is in maintenance and is upgraded, or a command does what is to be done.
    WORKING = "working", "is in maintenance"
    ACTIVATING = "activating", "comes up"
    #: It is up, and is looked at until the soak time is over.
    CHECKING = "checking", "is up and looked at"
    DONE = "done", "is done"
    #: There was nothing to do.
    SKIPPED = "skipped", "is left out"
    FAILED = "failed", "has failed"


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
    phase: HostPhase = HostPhase.WAITING
    #: Seconds since the phase began, by the database's clock.
    seconds: float = 0.0
    #: What it waits for, or how it ended.
    message: str = ""
    #: Whether it is marked: no VMs are placed there.
    draining: bool = False
    #: The VMs that ran there when it was marked.
    vms: tuple[str, ...] = ()
    #: Those that were stopped for it, and are to be started again.
    stopped: tuple[str, ...] = ()


class MaintenanceRun(msgspec.Struct, frozen=True, kw_only=True):
    """One rolling maintenance of hosts of a cluster, in their order; by default as it is requested."""

    id: str = ""
    cluster: str
    cluster_name: str
    state: RunState = RunState.RUNNING
    request: MaintenanceRequest = MaintenanceRequest()
    requested_by: str
    #: Seconds since the epoch, by the database's clock.
    created: float = 0.0
    updated: float = 0.0
    #: Seconds since it began, when this was read.
    age_seconds: float = 0.0
    message: str = ""
    #: Keys of the rules that were violated when it began: these are none of its making.
    violated: tuple[str, ...] = ()
    hosts: tuple[HostProgress, ...] = ()

    @property
    def active(self) -> bool:
        """Whether it is under way."""
        return self.state in ACTIVE


class RunOrder(NamedTuple):
    """What becomes of a run that is under way in one of some states, and how that is reported."""

    state: RunState
    after: tuple[RunState, ...]
    said: str


ORDERS: Final[Mapping[str, RunOrder]] = {
    "pause": RunOrder(
        RunState.PAUSED, (RunState.RUNNING,), "is paused: what is under way goes on, nothing new begins"
    ),
    "resume": RunOrder(RunState.RUNNING, (RunState.PAUSED,), "goes on"),
    "stop": RunOrder(
        RunState.STOPPING,
        (RunState.RUNNING, RunState.PAUSED),
        "is to end: a host that is out of service is brought up first",
    ),
}


class Overtaken(UserError):
    """The cluster has a run already, by the person whom the text names; or a run cannot obey any more."""

    @classmethod
    def by(cls, run: MaintenanceRun) -> Self:
        return cls(f"maintenance run {run.id} is {run.state}")


class MaintenanceStore(StoreAccess):
    """The maintenance runs of one engine, in a database."""

    def request(self, meant: MaintenanceRun) -> str:
        """Have the leading enforcer begin a run; its id.

        Raises `Overtaken` if a run is under way in the cluster: two administrators do not get two.
        """
        meant = replace(meant, id=meant.id or secrets.token_hex(3))
        run = msgspec.to_builtins(meant)
        hosts = run.pop("hosts")
        del run["age_seconds"]
        with self._transaction() as rows:
            hold_back_writers(rows)
            revise(rows)  # one after the other, also where no enforcer has a lease yet
            for found in _runs(rows, maintenance_runs.c.cluster == meant.cluster, _in_states(ACTIVE)):
                raise Overtaken(
                    f"maintenance run {found.id} by {found.requested_by} is under way in cluster"
                    f" {found.cluster_name}: ovirt-enforcer maintenance status"
                )
            rows.add(maintenance_runs, {**run, "created": now(), "updated": now()})
            for host in hosts:
                del host["seconds"]
                rows.add(maintenance_hosts, {**host, "run": meant.id, "since": now()})
            names = tuple(host.name for host in meant.hosts)
            _record(rows, UserActionKind.MAINTENANCE, meant, meant.requested_by, names)
        return meant.id

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

    def order(self, run_id: str, name: str, *, set_by: str) -> None:
        """Have a run paused, resumed or stopped. Raises `Overtaken`."""
        order, here = ORDERS[name], maintenance_runs.c.id == run_id
        with self._transaction() as rows:
            values = {"state": order.state.value, "updated": now()}
            obeys = rows.change(maintenance_runs, here, _in_states(order.after), **values)
            run = next(iter(_runs(rows, here)), None)
            if run is None:
                raise Overtaken(f"there is no maintenance run {run_id} any more")
            if not obeys:
                raise Overtaken.by(run)
            _record(rows, UserActionKind(f"maintenance_{name}"), run, set_by)

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

    def note(self, run_id: str, host: str, **changes: str | Sequence[str]) -> None:
        """Write down what a host waits for, as `message`; or which VMs are `stopped` for it, before."""
        with self._leading() as rows:
            rows.change(maintenance_hosts, *_host_of_run(run_id, host), **changes)

    def say(self, run_id: str, message: str) -> None:
        """Write down what a run waits for besides its hosts."""
        with self._leading() as rows:
            rows.change(maintenance_runs, maintenance_runs.c.id == run_id, message=message)


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
    return tuple(replace(run, hosts=tuple(hosts.get(run.id, ()))) for run in found)


def _record(
    rows: EngineRows, kind: UserActionKind, run: MaintenanceRun, login: str, details: tuple[str, ...] = ()
) -> None:
    of = {"cluster": run.cluster, "cluster_name": run.cluster_name, "subject": run.id}
    record(rows, Act(kind=kind, login=login, details=details, **of))
