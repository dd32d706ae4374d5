"""A plan of rolling maintenance as an administrator reads it: made from nothing but the record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ovirt_placement.answers.document import duration_text, fewest_rounds_text
from ovirt_placement.answers.foreseen_moves import migrations, move_text, moved_by_engine_text
from ovirt_placement.answers.maintenance import (
    ClusterMaintenance,
    HostWithoutRound,
    MaintenanceRound,
    RelaxedObstacle,
)
from ovirt_placement.model.amounts import counted
from ovirt_placement.model.names import Named
from ovirt_placement.planning.obstacles import ObstacleKind


def maintenance_text(found: ClusterMaintenance) -> Iterator[str]:
    """Rounds with their moves, then hosts without one."""
    yield f"Maintenance in cluster {found.cluster.name}: {summary_text(found)}"
    for number, one in enumerate(found.rounds, 1):
        yield from (f"  {line}" for line in _round_text(number, one))
    yield from (f"  {line}" for line in rest_text(found))


def rest_text(found: ClusterMaintenance) -> Iterator[str]:
    """What stands after the rounds: the way back, hosts without a round, and what would help."""
    yield from _back_text(found)
    for left in found.without_round:
        yield from _left_text(left)
    yield from (_relaxed_text(one) for one in found.relaxed)


def summary_text(found: ClusterMaintenance) -> str:
    """How many hosts in how many rounds, what that costs, and how near it is to the best."""
    if not found.rounds:
        return "no host can be taken out now."
    hosts = sum(len(one.hosts) for one in found.rounds)
    rounds, count = len(found.rounds), found.migrations
    out = f"{counted(hosts, 'host')} in {counted(rounds, 'round')}"
    bound = "" if found.proven else f" (at least {found.rounds_at_least})"
    cost = f"{migrations(count)} {fewest_rounds_text(found.proven, found.migrations_at_least)}"
    return f"{out}{bound}, {cost}, about {duration_text(found.seconds)}."


def _round_text(number: int, one: MaintenanceRound) -> Iterator[str]:
    empty = "nothing to migrate"
    if one.moves:
        count = sum(len(move.vms) for move in one.moves)
        empty = f"{migrations(count)}, about {duration_text(one.migrating_seconds)}"
    out = f"then out for {duration_text(one.maintenance_seconds)}"
    yield f"Round {number}: {_names(one.hosts)} ({empty}; {out})"
    for place, move in enumerate(one.moves, 1):
        yield f"  {place}. {move_text(move)}"
    if one.stopped:
        yield f"  stopped meanwhile, as you agreed to: {_names(one.stopped)}"
    for moved in one.moved_by_engine:
        yield f"  {moved_by_engine_text(moved)}"


def _back_text(found: ClusterMaintenance) -> Iterator[str]:
    if found.back:
        count = sum(len(move.vms) for move in found.back)
        yield f"Back: {migrations(count)}, about {duration_text(found.back_seconds)}"
    for place, move in enumerate(found.back, 1):
        yield f"  {place}. {move_text(move)}"
    for one in found.not_back:
        yield f"{one.vm.name} is not brought back: {one.because}"


def _left_text(left: HostWithoutRound) -> Iterator[str]:
    yield f"No round for {left.host.name}:"
    yield from (f"  - {obstacle.text}" for obstacle in left.obstacles)


def _relaxed_text(one: RelaxedObstacle) -> str:
    groups = " and ".join(group.title for group in one.obstacle.groups)
    stop = " ".join(f"--stop {vm.name}" for vm in one.obstacle.vms)
    stays = f"Once {_names(one.obstacle.vms)} may be migrated, or with {stop}" if one.held else f"With {stop}"
    relaxed = {
        ObstacleKind.RULE: f"Without {groups}",
        ObstacleKind.STAYS: stays,
    }.get(ObstacleKind(one.obstacle.kind), "Without the HA reservation of the cluster")
    if not one.hosts:
        return f"{relaxed} alone, there is still no round for any of them."
    return f"{relaxed}, there is a round for {_names(one.hosts)} as well."


def _names(named: Iterable[Named]) -> str:
    return ", ".join(one.name for one in named)
