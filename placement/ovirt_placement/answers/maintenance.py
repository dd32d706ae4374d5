"""A plan of rolling maintenance as data: rounds, each VM's moves, bounds, and why hosts get no round."""

from __future__ import annotations

from typing import Literal

from ovirt_placement.answers.foreseen_moves import ForeseenMove, MovedByEngine, move_record, moved_by_engine
from ovirt_placement.answers.plans.obstacles import NamedObstacle, kept_text, named_obstacles
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import Named, named_cluster, named_host, named_hosts, named_vm, named_vms
from ovirt_placement.model.record import Record
from ovirt_placement.planning.maintenance.data import BlockedHost, MaintenancePlan, Relaxation, Round

#: Grows when something that programs may rely on goes, or changes its meaning; not when something is added.
FORMAT: Literal[1] = 1


class MaintenanceRound(Record, frozen=True, omit_defaults=False):
    """Hosts that are out at the same time, and what happens before."""

    #: In the order in which they are deactivated.
    hosts: tuple[Named, ...]
    #: The migrations that empty them, with those of this round that each waits for.
    moves: tuple[ForeseenMove, ...]
    #: VMs that are stopped before, and started again on their hosts afterwards.
    stopped: tuple[Named, ...]
    moved_by_engine: tuple[MovedByEngine, ...]
    #: How long the migrations are thought to take, and then the maintenance.
    migrating_seconds: float
    maintenance_seconds: float


class HostWithoutRound(Record, frozen=True, omit_defaults=False):
    """A host that no round takes out."""

    host: Named
    #: VMs that cannot leave it.
    vms: tuple[Named, ...]
    #: What stands in the way: the smallest set that was found.
    obstacles: tuple[NamedObstacle, ...]


class RelaxedObstacle(Record, frozen=True, omit_defaults=False):
    """What stands in the way, and the hosts that get a round as well where it alone is relaxed."""

    obstacle: NamedObstacle
    hosts: tuple[Named, ...]
    #: Whether its VMs are held back by somebody, perhaps for a while only: after a migration, say.
    held: bool


class VmThatStays(Record, frozen=True, omit_defaults=False):
    """A VM that was to be brought back, and why it is not."""

    vm: Named
    because: str


class ClusterMaintenance(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The maintenance of hosts of one cluster."""

    cluster: Named
    #: How many hosts may be out at once.
    at_once: int
    rounds: tuple[MaintenanceRound, ...]
    #: How many VMs are migrated before rounds; one that is migrated twice counts twice.
    migrations: int
    #: Rounds that any plan for these hosts has, and migrations that any plan has with this many rounds.
    rounds_at_least: int
    migrations_at_least: int
    #: Whether no plan has fewer rounds, and none with as few fewer migrations.
    proven: bool
    #: How long all of it is thought to take.
    seconds: float
    without_round: tuple[HostWithoutRound, ...]
    #: Migrations after the last round that bring VMs back, and how long they are thought to take.
    back: tuple[ForeseenMove, ...]
    back_seconds: float
    not_back: tuple[VmThatStays, ...]
    #: What relaxing each obstacle by itself comes to: a rule, the HA reservation, or by stopping VMs. As much
    #: as there was time to try.
    relaxed: tuple[RelaxedObstacle, ...]


class MaintenancePlans(Record, frozen=True, omit_defaults=False):
    """The maintenance of all hosts that were asked for."""

    format: Literal[1]
    clusters: tuple[ClusterMaintenance, ...]


def maintenance_record(plan: MaintenancePlan, snapshot: Snapshot) -> ClusterMaintenance:
    """A plan with names."""
    return ClusterMaintenance(
        cluster=named_cluster(plan.cluster, snapshot),
        at_once=plan.at_once,
        rounds=tuple(_round(one, snapshot) for one in plan.rounds),
        migrations=plan.migrations,
        rounds_at_least=plan.rounds_at_least,
        migrations_at_least=plan.migrations_at_least,
        proven=plan.proven,
        seconds=plan.seconds,
        without_round=tuple(_without_round(one, snapshot) for one in plan.blocked),
        back=tuple(move_record(step, snapshot) for step in plan.back),
        back_seconds=plan.back_seconds,
        not_back=tuple(
            VmThatStays(named_vm(vm, snapshot), kept_text(why, snapshot)) for vm, why in plan.kept
        ),
        relaxed=tuple(_relaxed(one, snapshot) for one in plan.relaxations),
    )


def _round(one: Round, snapshot: Snapshot) -> MaintenanceRound:
    return MaintenanceRound(
        hosts=named_hosts(one.hosts, snapshot),
        moves=tuple(move_record(step, snapshot) for step in one.steps),
        stopped=named_vms(one.stopped, snapshot),
        moved_by_engine=moved_by_engine(one.by_engine, snapshot),
        migrating_seconds=one.migrating_seconds,
        maintenance_seconds=one.maintenance_seconds,
    )


def _without_round(one: BlockedHost, snapshot: Snapshot) -> HostWithoutRound:
    return HostWithoutRound(
        host=named_host(one.host, snapshot),
        vms=named_vms(one.vms, snapshot),
        obstacles=named_obstacles(one.obstacles, snapshot),
    )


def _relaxed(one: Relaxation, snapshot: Snapshot) -> RelaxedObstacle:
    (obstacle,) = named_obstacles((one.obstacle,), snapshot)
    return RelaxedObstacle(obstacle, named_hosts(one.hosts, snapshot), held=bool(one.obstacle.words))
