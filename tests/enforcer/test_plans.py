"""A repair that time alone makes cheaper is waited for as long as that is worth it; nothing else waits."""

import pytest
from msgspec.structs import replace

from ovirt_enforcer.plans import Holding, repair_plan
from ovirt_placement.answers.plans import plan_record
from ovirt_placement.answers.plans.text import text
from ovirt_placement.model import PlacementKey, SchedulingPolicy
from ovirt_placement.planning.plan import NEVER, Plan
from ovirt_placement.planning.problem.build_problem import PlanOptions
from ovirt_placement.planning.strategies import StrategyName, strategy
from tests.builders import APART, CLUSTER, cluster, group, host, snapshot, vm

_HOSTS = ("h1", "h2", "h3")
_KEYS = PlanOptions(keys=True)

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
MORE = group("more", APART, "x y")
REFUSED = {("a", "h2"): "the engine refused it", ("b", "h2"): "the engine refused it"}


GREEDY = strategy(StrategyName.GREEDY)


def plan(
    waits: dict[tuple[str, str], float],
    left_out: dict[tuple[str, str], str] | None = None,
    frozen: dict[str, str] | None = None,
    *,
    more: bool = False,
) -> Plan:
    state = snapshot(*STATE.hosts, *STATE.vms, *STATE.affinity_groups, *([MORE] if more else []))
    holding = Holding(frozen or {}, REFUSED if left_out is None else left_out, {}, waits)
    return repair_plan(state, CLUSTER, holding, PlanOptions(), GREEDY, NEVER)


def reasons(made: Plan) -> list[str]:
    return [obstacle.words for rule in made.remaining for obstacle in rule.obstacles]


def test_four_migrations_are_the_next_best_where_nothing_is_to_be_waited_for() -> None:
    assert plan({}).migrations == 4
    assert plan({}, left_out={}).migrations == 1


def test_it_waits_where_one_migration_will_do_then_and_says_so() -> None:
    made = plan(dict.fromkeys(REFUSED, 600.0))
    assert not made.steps
    (rule,) = made.remaining
    assert rule.groups == ("pair",)
    assert any(
        one.startswith("it waits, 30 min at most, until ")
        and one.endswith(" may be moved to h2: 1 migration will do then, and 4 would now")
        for one in reasons(made)
    )


@pytest.mark.parametrize(("seconds", "waits"), [(1800.0, True), (1801.0, False)])
def test_each_migration_that_is_saved_is_worth_ten_minutes(seconds: float, waits: bool) -> None:
    assert plan(dict.fromkeys(REFUSED, seconds)).migrations == (0 if waits else 4)


def test_what_does_not_wait_is_repaired_meanwhile() -> None:
    made = plan(dict.fromkeys(REFUSED, 600.0), more=True)
    assert [step.groups for step in made.steps] == [("more",)]


def test_a_cooldown_is_waited_for_as_a_refusal_is() -> None:
    both = {"a": "its cooldown is 600 s", "b": "its cooldown is 600 s"}
    assert plan({("a", ""): 500.0, ("b", ""): 500.0}, left_out={}, frozen=both).migrations == 0
    one = {"a": "its cooldown is 600 s"}
    # The other may go at once.
    assert plan({("a", ""): 500.0}, left_out={}, frozen=one).migrations == 1


def test_what_is_left_out_for_good_is_not_waited_for() -> None:
    only = {("a", "h2"): 60.0}
    lasting = {("b", "h2"): "it was taken from h2 lately"}
    assert plan(only, {**lasting, ("a", "h2"): "the engine refused it"}).migrations == 0
    assert plan({}, {**lasting, ("a", "h2"): "the engine refused it"}).migrations == 4


def test_a_vm_that_makes_room_is_waited_for_as_one_that_is_to_move() -> None:
    """With `f` gone from h2, one of the two fits there; it may leave in a while."""
    state = snapshot(
        host("h1", memory_mb=20000, free_mb=2000),
        host("h2", memory_mb=10000, free_mb=7000),
        host("h3", memory_mb=10000, free_mb=700),
        host("h4", memory_mb=10000, free_mb=7650),
        vm("a", "h1", needs_mb=8000),
        vm("b", "h1", needs_mb=8000),
        vm("f", "h2", needs_mb=1500),
        *(vm(f"s{number}", "h3", needs_mb=2500) for number in range(3)),
        group("pair", APART, "a b"),
    )
    for seconds, migrations in ((600.0, 0), (6000.0, 4)):
        holding = Holding({"f": "its cooldown"}, {}, {}, {("f", ""): seconds})
        made = repair_plan(state, CLUSTER, holding, PlanOptions(), GREEDY, NEVER)
        assert made.migrations == migrations
    assert Holding({"f": "its cooldown"}).waits == {}


def test_placement_keys_are_waited_for_as_rules_are() -> None:
    """`a` is to leave h1, which takes one migration to h2, and two to h3, where `c` is."""
    filters = SchedulingPolicy(filters=("PlacementKeyFilter",))
    state = snapshot(
        cluster(scheduling_policy=filters), *map(host, _HOSTS), vm("a", "h1"), vm("c", "h3"),
        group("apart", APART, "a c"),
    )  # fmt: skip
    keys = [("server", "a", 1.0, -100.0), *(("node", name, float(name == "h1"), None) for name in _HOSTS)]
    state = replace(
        state,
        placement_keys=tuple(
            PlacementKey(level=level, resource=of, key_class="system", name="SAN", value=value, weight=weight)
            for level, of, value, weight in keys
        ),
    )
    refused = {("a", "h2"): "the engine refused it"}
    for waits, migrations in (({}, 2), ({("a", "h2"): 600.0}, 0), ({("a", "h2"): 601.0}, 2)):
        made = repair_plan(state, CLUSTER, Holding({}, refused, {}, waits), _KEYS, GREEDY, NEVER)
        assert made.migrations == migrations
        assert (migrations == 0) is any(
            "it waits, 10 min at most, until a may be moved to h2" in one for one in reasons(made)
        )


def test_an_ha_reservation_is_waited_for_as_rules_are() -> None:
    """`v` finds a home when h1 fails once `f` has left h2: to h4, or to h3 after `s0` has left that."""
    state = snapshot(
        cluster(ha_reservation=True),
        host("h1", memory_mb=20000, free_mb=2000),
        host("h2", memory_mb=10000, free_mb=7000),
        host("h3", memory_mb=10000, free_mb=2500),
        host("h4", memory_mb=10000, free_mb=3500),
        vm("v", "h1", needs_mb=8000, ha=True),
        vm("f", "h2", needs_mb=3000),
        *(vm(f"s{number}", "h3", needs_mb=2500) for number in range(3)),
    )
    refused = {("f", "h4"): "the engine refused it"}
    options = PlanOptions(reserve=True)
    for waits, migrations in (({}, 2), ({("f", "h4"): 600.0}, 0), ({("f", "h4"): 601.0}, 2)):
        made = repair_plan(state, CLUSTER, Holding({}, refused, {}, waits), options, GREEDY, NEVER)
        assert made.migrations == migrations
        assert made.reservation is not None
        said = text(plan_record(made, state))
        expected = "The HA reservation is not restored: it waits, 10 min at most, until f may be moved to h4"
        assert (expected in said) is (migrations == 0)
