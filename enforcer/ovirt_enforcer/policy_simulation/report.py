"""Simulations as an administrator reads them, with names."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_enforcer.policy_simulation.course import Actor, Loop, MigrationMade, Simulation, SimulationOutcome
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import group_name, host_name, vm_name

_WHO = {
    Actor.ENFORCER: "the enforcer",
    Actor.ENGINE: "the engine's affinity enforcement",
    Actor.BALANCE: "the balance",
}


def text(simulation: Simulation, snapshot: Snapshot) -> str:
    """A simulation in lines: how it ended, and of a loop who moves which VM for what, and what makes it."""
    name = snapshot.cluster_by_id[simulation.cluster].name
    lines = [f"Cluster {name} ({_cast(simulation)}): {_outcome(simulation)}"]
    if simulation.loop is not None:
        lines += _loop_text(simulation.loop, snapshot)
    return "\n".join(lines)


def _cast(simulation: Simulation) -> str:
    words = [_WHO[actor] for actor in simulation.actors if actor is not Actor.BALANCE]
    return " and ".join([*words, simulation.balance or "no balance that is known"])


def _outcome(simulation: Simulation) -> str:
    after = f"after {_migrations(simulation.migrations)}"
    if simulation.loop is not None:
        again = _migrations(len(simulation.loop.migrations))
        return f"a LOOP: {after} come {again} again and again."
    if simulation.outcome is SimulationOutcome.SETTLED:
        return f"settles {after}." if simulation.migrations else "nobody moves anything."
    return f"not settled {after}; {'there was no more time' if simulation.out_of_time else 'given up'}."


def _loop_text(loop: Loop, snapshot: Snapshot) -> Iterator[str]:
    for number, one in enumerate(loop.migrations, 1):
        yield f"  {number}. {_migration_text(one, snapshot)}"
    made_by = [group_name(group, snapshot) for group in loop.groups] + list(loop.units)
    yield f"  Made by: {', '.join(made_by)}"
    if not loop.groups_needed:
        yield "  There was no time to see which of these groups it needs."


def _migration_text(one: MigrationMade, snapshot: Snapshot) -> str:
    way = f"{vm_name(one.vm, snapshot)} from {host_name(one.source, snapshot)}"
    units = f" ({', '.join(one.units)})" if one.units else ""
    return f"{way} to {host_name(one.target, snapshot)} by {_WHO[one.by]}{units}: {one.because}"


def _migrations(number: int) -> str:
    return f"{number} migration{'' if number == 1 else 's'}"
