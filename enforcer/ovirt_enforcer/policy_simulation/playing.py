"""Lets all act in turn on a snapshot until nobody moves anything, or all is as it was before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ovirt_enforcer.policy_simulation.acting import BalanceTurn, EnforcerTurn, EngineTurn
from ovirt_enforcer.policy_simulation.balancing import balance_of
from ovirt_enforcer.policy_simulation.course import Actor, MigrationMade, SimulationOutcome
from ovirt_enforcer.policy_simulation.scene import Scene
from ovirt_enforcer.policy_simulation.scheduling import Scheduler
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.planner import Frozen
from ovirt_placement.planning.problem.build_problem import PlanOptions
from ovirt_placement.rules.world import World


class Cast(NamedTuple):
    """Who acts, and by which wishes the enforcer does."""

    actors: tuple[Actor, ...]
    frozen: Frozen
    options: PlanOptions


class Play(NamedTuple):
    """How it went. Of a loop, this many `migrations` from `begins` on come again and again."""

    outcome: SimulationOutcome
    migrations: tuple[MigrationMade, ...]
    #: The state that all ended in; of a loop, the one that comes again, and the actor whose turn it is then.
    end: Snapshot
    next: Actor
    begins: int = 0
    length: int = 0
    out_of_time: bool = False

    @property
    def loop(self) -> tuple[MigrationMade, ...]:
        """One round of the migrations that come again; none unless it is a loop."""
        return self.migrations[self.begins : self.begins + self.length]


class _Turn(Protocol):
    def act(self, scene: Scene, deadline: Deadline) -> Iterator[MigrationMade]: ...


@dataclass
class _Stage:
    """What is remembered while all act."""

    scene: Scene
    enforcer: EnforcerTurn
    #: Whether the enforcer may pass where it found nothing to do before: quicker, but no loop is one then.
    hasty: bool = True
    #: How many migrations there had been, by where all were and whose turn it was.
    seen: dict[tuple[int, frozenset[tuple[str, str]]], int] = field(default_factory=dict)

    def passes(self, *, others_rest: bool) -> bool:
        """Whether the enforcer is not asked: it could repair nothing, and nothing else has violated since."""
        hopeless = self.enforcer.hopeless
        if not self.hasty or others_rest or hopeless is None:
            return False
        return self.enforcer.wanted(self.scene) <= hopeless

    def begins(self, turn: int, made: int) -> int | None:
        """How many migrations there had been when all was as it is now; None if it never was."""
        key = (turn, self.scene.placement)
        before = self.seen.setdefault(key, made)
        if before == made:
            return None
        if not self.hasty:
            return before
        self.hasty = False
        self.seen = {key: made}
        return None


def play(
    snapshot: Snapshot, cluster: str, cast: Cast, most: int, deadline: Deadline, first: Actor | None = None
) -> Play:
    """Let all act, `first` before the others, until they settle, go in circles, or moved this many VMs."""
    stage = _Stage(Scene(settled(snapshot, cluster), cluster), EnforcerTurn(cast.frozen, cast.options))
    turns = _turns(cast, stage)
    made: list[MigrationMade] = []
    turn = 0 if first is None else cast.actors.index(first)
    resting: set[int] = set()

    def ended(outcome: SimulationOutcome, begins: int = 0, length: int = 0) -> Play:
        end, following = stage.scene.snapshot, cast.actors[turn]
        return Play(outcome, tuple(made), end, following, begins, length, deadline.over)

    while len(resting) < len(turns):
        if deadline.over or len(made) >= most:
            return ended(SimulationOutcome.UNSETTLED)
        begins = stage.begins(turn, len(made))
        if begins is not None:
            return ended(SimulationOutcome.LOOP, _earliest(made, begins), len(made) - begins)
        others_rest = len(resting - {turn}) == len(turns) - 1
        if turns[turn] is not stage.enforcer or not stage.passes(others_rest=others_rest):
            moved = list(turns[turn].act(stage.scene, deadline))
            made += moved
            resting = set() if moved else resting | {turn}
        turn = (turn + 1) % len(turns)
    return ended(SimulationOutcome.UNSETTLED if deadline.over else SimulationOutcome.SETTLED)


def settled(snapshot: Snapshot, cluster: str) -> Snapshot:
    """The cluster once what is on its way has arrived, as far as it is known where to."""
    going = {
        vm.id: snapshot.pending_hosts[vm.id][-1]
        for vm in snapshot.vms
        if vm.cluster == cluster and vm.host is not None and vm.id in snapshot.pending_hosts
    }
    there = {vm: host for vm, host in going.items() if host in snapshot.host_by_id}
    return World(snapshot).arrived(there, source_freed=True).snapshot if there else snapshot


def _earliest(made: Sequence[MigrationMade], begins: int) -> int:
    """Where a loop began, of which all migrations from `begins` on are one round."""
    length = len(made) - begins
    while begins > 0 and made[begins - 1] == made[begins - 1 + length]:
        begins -= 1
    return begins


def actors_of(snapshot: Snapshot, cluster: str) -> tuple[Actor, ...]:
    """Who moves VMs of a cluster, in the order in which they act."""
    balanced = balance_of(snapshot.cluster_by_id[cluster]) is not None
    return (Actor.ENFORCER, Actor.ENGINE, *((Actor.BALANCE,) if balanced else ()))


def _turns(cast: Cast, stage: _Stage) -> list[_Turn]:
    balance = balance_of(stage.scene.snapshot.cluster_by_id[stage.scene.cluster])
    scheduler = Scheduler()
    turns: dict[Actor, _Turn] = {Actor.ENFORCER: stage.enforcer, Actor.ENGINE: EngineTurn(scheduler)}
    if balance is not None:
        turns[Actor.BALANCE] = BalanceTurn(balance, scheduler)
    return [turns[actor] for actor in cast.actors]
