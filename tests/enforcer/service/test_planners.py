"""No plan waits for another one, nor keeps the process from ending; a repair waits while that is worth it."""

import re
import time
from collections.abc import Iterator
from multiprocessing.connection import wait
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_enforcer.planners import Call, CallFailed, PlannerProcesses, PlanQuestion
from ovirt_enforcer.plans import Holding, repair_plan
from ovirt_placement.answers.plans import plan_record
from ovirt_placement.answers.plans.text import text
from ovirt_placement.model import SchedulingPolicy, Snapshot, state_file
from ovirt_placement.planning.plan import NEVER, Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.planning.problem.build_problem import PlanOptions
from ovirt_placement.planning.strategies import StrategyName, strategy
from tests.builders import APART, CLUSTER, cluster, group, host, key, node_key, snapshot, vm
from tests.scenarios.stage import play

#: Two clusters: in one, 400 VMs are to be parted on 450 hosts; in the other, two on two.
LARGE_AND_SMALL = snapshot(
    cluster("large"),
    cluster("small"),
    *(host(f"l{number}", cluster="large") for number in range(450)),
    *(vm(f"v{number}", f"l{number // 3}", cluster="large") for number in range(400)),
    group("many", APART, " ".join(f"v{number}" for number in range(400)), cluster="large"),
    host("s1", cluster="small"),
    host("s2", cluster="small"),
    vm("a", "s1", cluster="small"),
    vm("b", "s1", cluster="small"),
    group("two", APART, "a b", cluster="small"),
)


def question(name: str, strategy: StrategyName = StrategyName.GREEDY) -> PlanQuestion:
    return PlanQuestion(
        cluster=name, holding=Holding(), options=PlanOptions(), strategy=strategy, deadline=30.0
    )


@pytest.fixture
def planners() -> Iterator[PlannerProcesses]:
    found = PlannerProcesses()
    yield found
    found.close()


def awaited(planners: PlannerProcesses, planning: Call[Plan]) -> int:
    """How many steps the plan has, once it is there."""
    while not planning.over():
        wait(planners.answers(), 0.1)
    return len(planning.result().steps)


@pytest.mark.system
@pytest.mark.timing
def test_a_small_cluster_does_not_wait_for_a_large_one(planners: PlannerProcesses) -> None:
    large = planners.start(LARGE_AND_SMALL, question("large"))
    small = planners.start(LARGE_AND_SMALL, question("small"))
    assert awaited(planners, small) == 1
    assert not large.over()
    assert awaited(planners, large) == 266


@pytest.mark.system
@pytest.mark.timing
def test_they_can_be_ended_at_once(planners: PlannerProcesses) -> None:
    for _ in range(8):  # more than are made at once
        planners.start(LARGE_AND_SMALL, question("large"))
    began = time.monotonic()
    planners.close()
    assert time.monotonic() - began < 1
    assert planners.answers() == []


@pytest.mark.system
@pytest.mark.timing
def test_what_planning_raises_is_reported(planners: PlannerProcesses) -> None:
    spoilt: Snapshot = snapshot(cluster("small"), vm("a", "s1", cluster="small", memory_mb="none"))
    planning = planners.start(spoilt, question("small"))
    with pytest.raises(CallFailed, match="memory_mb"):
        awaited(planners, planning)


DRAWN_STATE = snapshot(
    *(host(f"h{number}") for number in range(4)),
    *(vm(f"{twin}{number}", f"h{number}") for number in range(3) for twin in "ab"),
    *(group(f"g{number}", APART, f"a{number} b{number}") for number in range(3)),
)


def reported(folder: Path, mode: str) -> list[str]:
    """What a daemon says in five minutes."""
    folder.mkdir()
    (folder / "state.json").write_bytes(state_file.dumps(DRAWN_STATE))
    (folder / "story.toml").write_text(
        f'until = 300\n[enforcer]\nmode = "{mode}"\nstrategy = "random"\nmemory_headroom_percent = 0\n'
        "cpu_headroom_percent = 0\n"
    )
    return play(folder, folder)


@pytest.mark.system
def test_what_was_drawn_stands_until_somebody_approves_of_it(tmp_path: Path) -> None:
    """It is planned again every minute meanwhile."""
    waiting = {
        found[1]
        for line in reported(tmp_path / "approve", "approve")
        if (found := re.search(r"plan (\S+) waits for an approval", line))
    }
    assert len(waiting) == 1


@pytest.mark.system
def test_each_daemon_draws_for_itself_and_says_with_what_the_plan_is_repeated(tmp_path: Path) -> None:
    seeds = []
    for number in range(2):
        log = "\n".join(reported(tmp_path / str(number), "observe"))
        (summary,) = set(re.findall(r"\(random, seed (\d+):", log))
        plan = make_plan(DRAWN_STATE, CLUSTER, strategy=strategy(StrategyName.RANDOM, int(summary)))
        (step,) = plan.steps
        assert f"1. {step.vms[0]} from {step.sources[0]} to {step.target}: repairs" in log
        seeds.append(summary)
    assert seeds[0] != seeds[1]


@pytest.mark.system
def test_when_one_is_carried_out_the_next_is_drawn(tmp_path: Path) -> None:
    log = reported(tmp_path / "enforce", "enforce")
    assert len(set(re.findall(r"\(random, seed (\d+)", "\n".join(log)))) == 3
    hosts = {line.split()[-3]: line.split()[-1] for line in log if " = " in line}
    assert all(hosts[f"a{number}"] != hosts[f"b{number}"] for number in range(3))


def test_a_plan_whose_process_cannot_be_started_has_failed_and_the_next_one_is_made(
    planners: PlannerProcesses, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its cluster would wait for it for ever."""

    def none_left(*_: object, **__: object) -> None:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as without:
        without.setattr("ovirt_enforcer.planners._processes.Pipe", none_left)
        planning = planners.start(LARGE_AND_SMALL, question("small"))
        with pytest.raises(CallFailed, match="Too many open files"):
            planning.result()
    assert planners.answers() == []


_HOSTS = ("h1", "h2", "h3")
#: `a` is to leave h1, which takes one migration to h2, and two to h3, where `c` is.
KEYED = replace(
    snapshot(
        cluster(scheduling_policy=SchedulingPolicy(filters=("PlacementKeyFilter",))),
        *(*map(host, _HOSTS), vm("a", "h1"), vm("c", "h3"), group("apart", APART, "a c")),
    ),
    placement_keys=(
        key("SAN", weight=-100.0, resource="a"),
        *(node_key(name, "SAN", float(name == "h1")) for name in _HOSTS),
    ),
)
#: `v` finds a home when h1 fails once `f` has left h2: to h4, or to h3 after `s0` has left that.
RESERVED = snapshot(
    cluster(ha_reservation=True),
    host("h1", memory_mb=20000, free_mb=2000),
    *(host(name, memory_mb=10000, free_mb=free) for name, free in (("h2", 7000), ("h3", 2500), ("h4", 3500))),
    vm("v", "h1", needs_mb=8000, ha=True),
    vm("f", "h2", needs_mb=3000),
    *(vm(f"s{number}", "h3", needs_mb=2500) for number in range(3)),
)
GREEDY = strategy(StrategyName.GREEDY)
#: Of VMs and hosts, or of VMs alone.
Waits = dict[tuple[str, str], float]
LeftOut = dict[tuple[str, str], str]

#: `a` and `b` are to be parted. One of them fits on h2 at once; on h3 only once the three there have left.
STATE = snapshot(
    host("h1", memory_mb=20000, free_mb=2000),
    host("h2", memory_mb=10000, free_mb=8200),
    host("h3", memory_mb=10000, free_mb=700),
    host("h4", memory_mb=10000, free_mb=7650),
    vm("a", "h1", needs_mb=8000),
    vm("b", "h1", needs_mb=8000),
    *(vm(f"s{number}", "h3", needs_mb=2500) for number in range(3)),
    group("pair", APART, "a b"),
    # One that is repaired at once, whatever waits: both are small enough for any host.
    *(vm(name, "h4", needs_mb=100) for name in ("x", "y")),
)
REFUSED = {("a", "h2"): "the engine refused it", ("b", "h2"): "the engine refused it"}
LASTING = {**REFUSED, ("b", "h2"): "it was taken from h2 lately"}
COOLDOWN = "its cooldown is 600 s"


def repaired(
    state: Snapshot,
    left_out: dict[tuple[str, str], str],
    waits: Waits,
    options: PlanOptions,
    frozen: str = "",
) -> Plan:
    holding = Holding(dict.fromkeys(frozen, COOLDOWN), left_out, {}, waits)
    return repair_plan(state, CLUSTER, holding, options, GREEDY, NEVER)


def reasons(made: Plan) -> list[str]:
    return [obstacle.words for rule in made.remaining for obstacle in rule.obstacles]


@pytest.mark.parametrize(
    ("left_out", "frozen", "waits", "migrations"),
    [
        ({}, "", {}, 1),
        (REFUSED, "", {}, 4),
        (REFUSED, "", dict.fromkeys(REFUSED, 1800.0), 0),
        (REFUSED, "", dict.fromkeys(REFUSED, 1801.0), 4),
        (LASTING, "", {("a", "h2"): 60.0}, 0),
        (LASTING, "", {}, 4),
        ({}, "ab", {("a", ""): 500.0, ("b", ""): 500.0}, 0),
        ({}, "a", {("a", ""): 500.0}, 1),
    ],
    ids=[
        *("the best", "the next best", "ten minutes for each that is saved", "no longer"),
        *("one of two may go later", "none may", "cooldowns", "the other may go at once"),
    ],
)
def test_a_refusal_or_a_cooldown_is_waited_for_while_that_is_worth_it(
    left_out: LeftOut, frozen: str, waits: Waits, migrations: int
) -> None:
    assert repaired(STATE, left_out, waits, PlanOptions(), frozen).migrations == migrations


def test_it_says_for_what_it_waits_and_repairs_meanwhile_what_does_not_wait() -> None:
    waits = dict.fromkeys(REFUSED, 600.0)
    made = repaired(STATE, REFUSED, waits, PlanOptions())
    assert not made.steps
    (rule,) = made.remaining
    assert rule.groups == ("pair",)
    assert any(
        one.startswith("it waits, 30 min at most, until ")
        and one.endswith(" may be moved to h2: 1 migration will do then, and 4 would now")
        for one in reasons(made)
    )
    more = group("more", APART, "x y")
    both = replace(STATE, affinity_groups=(*STATE.affinity_groups, more))
    assert [step.groups for step in repaired(both, REFUSED, waits, PlanOptions()).steps] == [("more",)]


@pytest.mark.parametrize(("seconds", "migrations"), [(600.0, 0), (6000.0, 4)])
def test_a_vm_that_makes_room_is_waited_for_as_one_that_is_to_move(seconds: float, migrations: int) -> None:
    """With `f` gone from h2, one of the two fits there; it may leave in a while."""
    h1, h2, *others = STATE.hosts
    pair = STATE.affinity_groups[0]
    vms = (*STATE.vms[:-2], vm("f", "h2", needs_mb=1500))
    state = snapshot(h1, replace(h2, free_mb=7000), *others, *vms, pair)
    assert repaired(state, {}, {("f", ""): seconds}, PlanOptions(), "f").migrations == migrations


@pytest.mark.parametrize("what", ["keys", "reserve"])
def test_placement_keys_and_an_ha_reservation_are_waited_for_as_rules_are(what: str) -> None:
    state, of = (KEYED, ("a", "h2")) if what == "keys" else (RESERVED, ("f", "h4"))
    for waits, migrations in (({}, 2), ({of: 600.0}, 0), ({of: 601.0}, 2)):
        made = repaired(state, {of: "the engine refused it"}, waits, PlanOptions(**{what: True}))
        assert made.migrations == migrations
        said = text(plan_record(made, state))
        expected = f"it waits, 10 min at most, until {of[0]} may be moved to {of[1]}"
        assert (expected in said) is (migrations == 0)
        assert what == "keys" or ("The HA reservation is not restored: it waits" in said) is (migrations == 0)
