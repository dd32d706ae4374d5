"""Schedules keep to limits and waits, and take little longer than the busiest host needs."""

import random
from collections import defaultdict
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.planning.plan import NEVER, Step
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.schedule import Schedule, ScheduleLimits, ready, schedule
from ovirt_placement.planning.verification import Pace
from tests.builders import CLUSTER
from tests.placement.planning.ordering.ordered import MOVES, order, repair, steps_of


def step(source: str, target: str, seconds: float, *after: int, vms: int = 1) -> Step:
    names = tuple(f"v{number}" for number in range(vms))
    return Step(
        vms=names, sources=(source,) * vms, target=target, groups=(), repairs=(), after=after, seconds=seconds
    )


def most_at_once(steps: Sequence[Step], found: Schedule, chosen: Sequence[int]) -> int:
    """Migrations of the chosen steps that run at one time."""
    return max(
        (
            sum(len(steps[at].vms) for at in chosen if found.starts[at] <= now < found.ends[at])
            for now in found.starts
        ),
        default=0,
    )


def busiest_host(steps: Sequence[Step], at_once: int) -> float:
    """Seconds that the busiest host takes to send, or to receive, this many at once."""
    loads: defaultdict[tuple[str, str], float] = defaultdict(float)
    for one in steps:
        loads["out", one.sources[0]] += one.seconds
        loads["in", one.target] += one.seconds
    return max(loads.values()) / at_once


@pytest.mark.parametrize("seed", range(4))
def test_a_repair_of_238_migrations_takes_little_longer_than_its_busiest_host(seed: int) -> None:
    state, where = repair(seed)
    found = order(pose(state, CLUSTER), where, NEVER)
    assert len(found.moves) == MOVES
    assert sum(len(one.after) for one in found.moves) > 20
    steps = steps_of(state, found, Pace())
    timed = schedule(steps, ScheduleLimits(out=2, into=2))
    assert timed.makespan <= 1.3 * busiest_host(steps, at_once=2)
    assert timed.makespan < sum(one.seconds for one in steps) / 10


HOSTS = ("h1", "h2", "h3", "h4")


@st.composite
def plans(draw: st.DrawFn) -> list[Step]:
    steps: list[Step] = []
    for number in range(draw(st.integers(0, 12))):
        source, target = draw(st.permutations(HOSTS))[:2]
        after = draw(st.sets(st.integers(0, number - 1), max_size=2)) if number else ()
        vms = draw(st.sampled_from([1, 1, 1, 2, 3]))
        steps.append(step(source, target, draw(st.integers(1, 9)), *sorted(after), vms=vms))
    return steps


@given(plans(), st.integers(1, 3), st.integers(1, 3), st.sampled_from([None, 1, 2, 4]))
def test_waits_and_limits_are_kept_to(steps: list[Step], out: int, into: int, cluster: int | None) -> None:
    limits = ScheduleLimits(out=out, into=into, cluster=cluster)
    found = schedule(steps, limits)
    assert found.at_least <= found.makespan <= sum(one.seconds for one in steps)
    for at, one in enumerate(steps):
        assert found.ends[at] == found.starts[at] + one.seconds
        assert all(found.ends[before] <= found.starts[at] for before in one.after)
    largest = max((len(one.vms) for one in steps), default=0)
    assert most_at_once(steps, found, range(len(steps))) <= max(cluster or 99, largest)
    for host in HOSTS:
        leaving = [at for at, one in enumerate(steps) if one.sources[0] == host]
        coming = [at for at, one in enumerate(steps) if one.target == host]
        assert most_at_once(steps, found, leaving) <= max(out, largest)
        assert most_at_once(steps, found, coming) <= max(into, largest)


@given(plans(), st.randoms(use_true_random=False))
def test_to_begin_what_is_ready_carries_out_the_plan(steps: list[Step], chance: random.Random) -> None:
    done, running = set[int](), set[int]()
    while len(done) < len(steps):
        now = ready(steps, done, running)
        assert set(now).isdisjoint(done | running)
        assert all(done.issuperset(steps[at].after) for at in now)
        waiting = set(range(len(steps))) - done - running - set(now)
        assert not any(done.issuperset(steps[at].after) for at in waiting)
        running.update(now[:1])
        ended = chance.choice(sorted(running))
        running.remove(ended)
        done.add(ended)


def test_the_step_that_a_long_row_waits_for_comes_first() -> None:
    steps = [step("h1", "h2", 30), step("h3", "h4", 5), step("h4", "h5", 40, 1)]
    assert ready(steps, done=(), running=()) == (1, 0)


def test_the_busiest_host_comes_first() -> None:
    steps = [step("h1", "h2", 30), *(step("h3", f"t{number}", 20) for number in range(5))]
    assert ready(steps, done=(), running=())[-1] == 0


def test_what_is_done_makes_no_host_busy() -> None:
    steps = [step("h1", "h2", 30), *(step("h3", f"t{number}", 20) for number in range(5))]
    assert ready(steps, done=(1, 2, 3), running=(4,))[0] == 0


def test_a_group_larger_than_a_limit_still_moves_but_alone() -> None:
    steps = [step("h1", "h2", 30, vms=5), step("h1", "h3", 10), step("h1", "h4", 10)]
    found = schedule(steps, ScheduleLimits(out=2))
    assert found.starts == (0.0, 30.0, 30.0)


def test_the_engine_and_the_cluster_may_allow_less_than_the_hosts() -> None:
    steps = [step(f"h{number}", f"t{number}", 10) for number in range(6)]
    assert schedule(steps, ScheduleLimits()).makespan == 10
    assert schedule(steps, ScheduleLimits(cluster=3)).makespan == 20
    assert schedule(steps, ScheduleLimits(cluster=3, engine=2)).makespan == 30
    assert schedule(steps, ScheduleLimits(cluster=3, engine=2)).at_least == 30


def test_nothing_to_do_takes_no_time() -> None:
    assert schedule([], ScheduleLimits()).makespan == 0
    assert ready([], done=(), running=()) == ()
