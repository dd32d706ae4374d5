"""Simulates what all who migrate VMs of a cluster make of it, and names a loop if there is one."""

from __future__ import annotations

from ovirt_enforcer.policy_simulation.balancing import balance_of
from ovirt_enforcer.policy_simulation.causes import causes
from ovirt_enforcer.policy_simulation.course import Loop, Simulation, SimulationOutcome
from ovirt_enforcer.policy_simulation.playing import Cast, Play, actors_of, play
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.deadline import NEVER, Deadline
from ovirt_placement.planning.planner import Frozen
from ovirt_placement.planning.problem.build_problem import DEFAULT_OPTIONS, PlanOptions

#: After this many migrations it is given up.
MOST_MIGRATIONS = 1000


def simulate(
    snapshot: Snapshot,
    cluster: str,
    frozen: Frozen = (),
    *,
    options: PlanOptions = DEFAULT_OPTIONS,
    deadline: Deadline = NEVER,
    most: int = MOST_MIGRATIONS,
) -> Simulation:
    """Let the enforcer, the engine's enforcement and the balance of the policy act in turn on a snapshot.

    VMs in `frozen` are left alone by the enforcer. The same snapshot comes to the same end, unless the
    deadline cuts it short. Where the engine draws lots, one draw is tried.
    """
    cast = Cast(actors_of(snapshot, cluster), frozen, options)
    went = play(snapshot, cluster, cast, most, deadline)
    balance = balance_of(snapshot.cluster_by_id[cluster])
    return Simulation(
        cluster=cluster,
        outcome=went.outcome,
        migrations=went.begins if went.outcome is SimulationOutcome.LOOP else len(went.migrations),
        actors=cast.actors,
        balance=balance.unit if balance is not None else None,
        loop=_loop(went, cluster, cast, deadline) if went.outcome is SimulationOutcome.LOOP else None,
        out_of_time=went.out_of_time and went.outcome is SimulationOutcome.UNSETTLED,
    )


def _loop(went: Play, cluster: str, cast: Cast, deadline: Deadline) -> Loop:
    found = causes(went, cluster, cast, deadline)
    return Loop(
        migrations=went.loop,
        groups=found.groups,
        units=tuple(dict.fromkeys(unit for one in went.loop for unit in one.units)),
        groups_needed=found.needed,
    )
