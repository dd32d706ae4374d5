"""Which moves are steps of a plan, as far as there is time to ask; what each is for, and when it runs."""

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.answers.plans import reason
from ovirt_placement.planning.plan import NEVER, NO_TIME, Step
from ovirt_placement.planning.problem.build_problem import pose
from ovirt_placement.planning.problem.problem import Move
from ovirt_placement.planning.requests import Moved, plan_back
from ovirt_placement.planning.steps import apply, certify, end_of, plan_seconds, schedule, step_seconds
from tests.builders import CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.placement.planning.ordered import MOVES, order, repair, steps_of

STATE = snapshot(
    host("h1"), host("h2", free_mb=1024),
    *(vm(name, "h1", needs_mb=1024) for name in "ab"), vm("c", "h2", needs_mb=1024),
)  # fmt: skip


def test_a_move_for_which_there_is_no_room_is_refused() -> None:
    found = certify(STATE, pose(STATE, CLUSTER), [Move(("a",), "h2"), Move(("b",), "h2")])
    assert [step.vms for step in found.steps] == [("a",)]
    assert found.refused is not None
    assert (found.refused.vms, found.whole) == (("b",), False)


def test_a_small_plan_is_checked_as_a_whole_however_late_it_is() -> None:
    moves = [Move(("c",), "h1"), Move(("a",), "h2"), Move(("b",), "h2")]
    found = certify(STATE, pose(STATE, CLUSTER), moves, NO_TIME)
    assert (found.whole, [step.after for step in found.steps]) == (True, [(), (), (0,)])


def test_a_large_plan_ends_where_time_does() -> None:
    moves = [Move(("a",), "h2" if number % 2 else "h1") for number in range(1, 50)]
    found = certify(STATE, pose(STATE, CLUSTER), moves, NO_TIME)
    assert (found.refused, found.whole) == (None, False)
    assert 0 < len(found.steps) < len(moves)


def test_all_steps_end_where_one_after_the_other_does_also_for_a_vm_that_moves_twice() -> None:
    moves = [Move(("c",), "h1"), Move(("a",), "h2"), Move(("a",), "h1"), Move(("c",), "h2")]
    for count in range(5):
        steps = certify(STATE, pose(STATE, CLUSTER), moves[:count]).steps
        assert len(steps) == count
        assert end_of(STATE, steps) == reduce(apply, steps, STATE)


def test_a_vm_makes_room_and_goes_back_or_on() -> None:
    state = snapshot(
        host("h1"), host("h2"), host("h3"), host("h4"), vm("a", "h1"), vm("b", "h2"), vm("c", "h2"),
        group("on", vms="a", hosts_rule=TOGETHER, hosts="h2"),
    )  # fmt: skip
    moves = [("b", "h3"), ("c", "h3"), ("a", "h2"), ("b", "h2"), ("c", "h4")]
    ordered = [Move((one,), target) for one, target in moves]
    steps = certify(state, pose(state, CLUSTER), ordered).steps
    assert [reason(step, state) for step in steps] == [
        "makes room for the next steps",
        "makes room for the next steps",
        "repairs affinity group on",
        "goes back to where it was",
        "moves on from its temporary host",
    ]


def test_the_way_back_makes_no_room() -> None:
    state = snapshot(host("h1"), host("h2"), vm("a", "h2"))
    (step,) = plan_back(state, CLUSTER, (Moved("a", "h1", "h2"),), {}).plan.steps
    assert reason(step, state) == "goes back to where it was"


def test_what_a_step_takes() -> None:
    """Only memory in use is sent, all where none is known; VMs of a group queue two by two on their host."""
    known, unknown = (vm("a", "h1", memory_mb=1024, usage_mem_percent=percent) for percent in (25, None))
    assert step_seconds([known]) == pytest.approx(10 + 256 / 56)
    assert step_seconds([unknown]) == pytest.approx(10 + 1024 / 56)
    small, large = vm("b", "h1"), vm("c", "h1", needs_mb=65536)
    assert step_seconds([small] * 2) == pytest.approx(step_seconds([small]))
    assert step_seconds([small] * 6) == pytest.approx(3 * step_seconds([small]))
    assert step_seconds([large, small]) == pytest.approx(step_seconds([large]))


def step(source: str, target: str, seconds: float, *after: int, vms: int = 1) -> Step:
    names = tuple(f"v{number}" for number in range(vms))
    return Step(
        vms=names, sources=(source,) * vms, target=target, groups=(), repairs=(), after=after, seconds=seconds
    )


def most_at_once(steps: Sequence[Step], spans: Sequence[tuple[float, float]], chosen: Sequence[int]) -> int:
    """Migrations of the chosen steps that run at one time."""
    return max(
        (sum(len(steps[at].vms) for at in chosen if spans[at][0] <= now < spans[at][1]) for now, _ in spans),
        default=0,
    )


def busiest_host(steps: Sequence[Step]) -> float:
    """Seconds that the busiest host takes to send, or to receive, two at once."""
    loads: defaultdict[tuple[str, str], float] = defaultdict(float)
    for one in steps:
        loads["out", one.sources[0]] += one.seconds
        loads["in", one.target] += one.seconds
    return max(loads.values()) / 2


@pytest.mark.parametrize("seed", range(4))
def test_a_repair_of_238_migrations_takes_little_longer_than_its_busiest_host(seed: int) -> None:
    state, where = repair(seed)
    found = order(pose(state, CLUSTER), where, NEVER)
    assert len(found.moves) == MOVES
    assert sum(len(one.after) for one in found.moves) > 20
    steps = steps_of(state, found)
    assert plan_seconds(steps) <= 1.3 * busiest_host(steps)
    assert plan_seconds(steps) < sum(one.seconds for one in steps) / 10


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


@given(plans())
def test_waits_and_limits_are_kept_to(steps: list[Step]) -> None:
    spans = schedule(steps)
    assert plan_seconds(steps) <= sum(one.seconds for one in steps)
    for one, (begins, ends) in zip(steps, spans, strict=True):
        assert ends == begins + one.seconds
        assert all(spans[before][1] <= begins for before in one.after)
    largest = max((len(one.vms) for one in steps), default=0)
    for host_id in HOSTS:
        leaving = [at for at, one in enumerate(steps) if one.sources[0] == host_id]
        coming = [at for at, one in enumerate(steps) if one.target == host_id]
        assert most_at_once(steps, spans, leaving) <= max(2, largest)
        assert most_at_once(steps, spans, coming) <= max(2, largest)


@pytest.mark.parametrize(
    ("steps", "begins"),
    [
        pytest.param(
            [step("h1", "t0", 30), step("h1", "t1", 30), step("h1", "h4", 5), step("h4", "h5", 70, 2)],
            {2: 0}, id="what a long row waits for comes first",
        ),
        pytest.param(
            [
                *[step("h1", "t", 30)] * 2, step("h3", "t", 20),
                *(step("h3", f"t{number}", 20) for number in range(4)),
            ],
            {0: 0, 1: 20, 2: 0}, id="what the busiest host sends comes first",
        ),
        pytest.param(
            [step("h1", "h2", 30, vms=5), step("h1", "h3", 10), step("h1", "h4", 10)], {0: 0, 1: 30, 2: 30},
            id="a group larger than a limit moves alone",
        ),
        pytest.param(
            [step(f"h{number}", f"t{number}", 10) for number in range(6)], dict.fromkeys(range(6), 0),
            id="hosts that have nothing in common",
        ),
        pytest.param([], {}, id="nothing to do"),
    ],
)  # fmt: skip
def test_when_steps_begin(steps: list[Step], begins: dict[int, float]) -> None:
    spans = schedule(steps)
    assert {number: spans[number][0] for number in begins} == begins
    assert plan_seconds(steps) == max((ends for _, ends in spans), default=0)
