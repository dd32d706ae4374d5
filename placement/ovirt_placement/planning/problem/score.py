"""How good an end is: hard rules, headroom, soft rules by priority, excess, migrations, memory, evenness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ovirt_placement.planning.problem.placement import ProblemPlacement, brought, placement_after
from ovirt_placement.planning.problem.problem import Move, Problem


class Score(NamedTuple):
    """Less is better, from the first field to the last.

    Headroom stands before soft rules: it is given up for hard rules alone, and no more of it than must be.
    """

    #: Violated hard rules that count.
    hard: int
    #: By how much what was placed cuts into the headroom of its targets: MiB, and percent of a core.
    headroom_deficit_mb: int
    headroom_deficit_cpu: int
    #: Violated soft rules that count, by level, the highest priority first.
    soft: tuple[int, ...]
    #: How much of the hard rules that remain violated is violated, where less of that is better: of what is
    #: limited in sum, in what is counted; else in VMs, and of affinity groups in pairs that share a host.
    excess: int
    #: VMs that end elsewhere.
    migrations: int
    #: MiB of these.
    memory_mb: int
    #: The fullest target: the share of its memory or CPU that is taken, whichever is more, in thousandths.
    fullest: int


def score(placement: ProblemPlacement) -> Score:
    """Of a placement that is the end of a plan; VMs that went and came back count nothing."""
    problem, moved = placement.problem, placement.moved
    memory_in, cpu_in = brought(problem, moved)
    targets = dict.fromkeys(moved.values())
    hard, *soft = placement.violations()
    return Score(
        hard=hard,
        headroom_deficit_mb=sum(
            headroom_deficit(memory_in[host], problem.spare_mb[host]) for host in targets
        ),
        headroom_deficit_cpu=sum(
            headroom_deficit(cpu_in[host], problem.spare_cpu.get(host, cpu_in[host])) for host in targets
        ),
        soft=tuple(soft),
        excess=placement.excess,
        migrations=len(moved),
        memory_mb=sum(problem.memory_mb[vm] for vm in moved),
        fullest=max((fill(problem, host, memory_in[host], cpu_in[host]) for host in targets), default=0),
    )


def crowded(placement: ProblemPlacement) -> tuple[str, ...]:
    """Targets of which what was placed takes some headroom, in the order of the hosts."""
    problem = placement.problem
    memory_in, cpu_in = brought(problem, placement.moved)
    targets = set(placement.moved.values())
    return tuple(
        host
        for host in problem.hosts
        if host in targets
        and (
            headroom_deficit(memory_in[host], problem.spare_mb[host])
            or headroom_deficit(cpu_in[host], problem.spare_cpu.get(host, cpu_in[host]))
        )
    )


def headroom_deficit(taken_in: float, spare: float) -> int:
    """What the plan takes of a host's headroom; what was gone before it is not its doing."""
    return max(0, round(taken_in - max(0.0, spare)))


def fill(problem: Problem, host: str, memory_in: int, cpu_in: float) -> int:
    """The share of a host that is taken once a plan has put so much there, in thousandths.

    One that is kept for failover counts as full before.
    """
    memory = 1.0 - (problem.free_mb[host] - memory_in) / max(1, problem.size_mb[host])
    used = problem.used_cpu.get(host)
    cpu = 0.0 if used is None else (used + cpu_in) / max(1.0, problem.size_cpu[host])
    return round(1000 * max(memory, cpu)) + 1000 * (host in problem.failover)


#: Hard, crowding, soft by level, excess, migrations; of a sequence, a VM that is migrated twice counts twice.
Value = tuple[int, ...]


def value(problem: Problem, moves: Sequence[Move]) -> Value:
    """Of moves from the start."""
    end = placement_after(problem, moves)
    return (*value_of(score(end))[:-1], sum(len(move.vms) for move in moves))


def value_of(one: Score) -> Value:
    """Of an end to which every VM goes straight."""
    return (
        one.hard,
        one.headroom_deficit_mb + one.headroom_deficit_cpu,
        *one.soft,
        one.excess,
        one.migrations,
    )
