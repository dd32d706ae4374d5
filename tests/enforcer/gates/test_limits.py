"""Limits and pauses: when they close, for whom, and how long until they open."""

from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.gates.gate import HOUR_SECONDS, Facts, begun_ago, begun_within, seconds_until_fewer
from ovirt_enforcer.gates.limits import COOLDOWN
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.store.enforcer.intents import Cause, Intent, IntentState
from tests.builders import CLUSTER, Part, cluster, host, pending, snapshot, vm
from tests.enforcer.gates.judging import (
    ENFORCE,
    NOON,
    PARTS,
    STEP,
    admitted,
    answer,
    closed,
    gates,
    intent,
    plan,
    step,
)

DONE, FAILED, ACCEPTED = IntentState.DONE, IntentState.FAILED, IntentState.ACCEPTED
#: Others that migrate in the same cluster, on hosts of their own, and in another one.
NEIGHBOURS: tuple[Part, ...] = (
    *(host(f"n{number}") for number in range(4)),
    vm("n1", "n0", migrating_to="n1", status="migrating"),
    vm("n2", "n2", status="migrating"),
    cluster(),
    cluster("other"),
    host("far", cluster="other"),
    vm("f1", "far", cluster="other", status="migrating"),
)


def limited(**limits: int) -> EnforcerSettings:
    return EnforcerSettings(mode=Mode.ENFORCE, **limits)


def test_a_cluster_that_is_upgraded_is_left_alone() -> None:
    parts = (*PARTS, cluster(upgrade_mode=True, upgrade_correlation_id="role-2024"))
    assert closed(gates(), *parts) == ("cluster_upgrade", "the cluster is being upgraded (role-2024)")
    unknown = (*PARTS, cluster(upgrade_mode=True))
    assert closed(gates(), *unknown) == ("cluster_upgrade", "the cluster is being upgraded")
    own, others = (
        (*PARTS, cluster(upgrade_mode=True, upgrade_correlation_id=by)) for by in ("maintenance-1", "x")
    )
    asked = gates(own_upgrades=frozenset({"maintenance-1"}))
    assert admitted(asked, *own)
    assert closed(asked, *others)[0] == closed(gates(), *own)[0] == "cluster_upgrade"


@pytest.mark.parametrize("host_id", ["h1", "h2"])
@pytest.mark.parametrize(
    ("status", "words"),
    [("maintenance", "is in maintenance"), ("preparing_for_maintenance", "goes into maintenance")],
)
def test_a_host_in_maintenance_is_left_alone(host_id: str, status: str, words: str) -> None:
    parts = (*(part for part in PARTS if part.id != host_id), host(host_id, status=status))
    assert closed(gates(), *parts) == ("host_maintenance", f"host {host_id} {words}")


def test_the_planner_knows_of_hosts_in_maintenance_and_their_vms() -> None:
    state = snapshot(*PARTS[1:], host("h1", status="preparing_for_maintenance"))
    reason = "host h1 goes into maintenance"
    assert gates().frozen(state) == {"a": reason, "b": reason}
    assert gates().frozen_hosts(state) == {"h1": reason}


@pytest.mark.parametrize(
    ("setting", "gate", "count", "where"),
    [
        ("migrations_at_once", "engine_at_once", 3, "in the engine"),
        ("cluster_migrations_at_once", "cluster_at_once", 2, "in this cluster"),
    ],
)
def test_migrations_at_once_are_limited(setting: str, gate: str, count: int, where: str) -> None:
    reason = f"limit reached: {count} migrations running {where} ({setting})"
    assert closed(gates(limited(**{setting: count})), *PARTS, *NEIGHBOURS) == (gate, reason)
    assert admitted(gates(limited(**{setting: count + 1})), *PARTS, *NEIGHBOURS)


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ({"source": "h1", "target": "n3"}, "1 migration running from h1 (host_migrations_out)"),
        ({"source": "n3", "target": "h2"}, "1 migration running to h2 (host_migrations_in)"),
    ],
)
def test_migrations_from_and_to_a_host_are_limited(ends: dict[str, str], words: str) -> None:
    parts = (*PARTS, host("n3"), vm("c", ends["source"]))
    under_way = [intent(ACCEPTED, 1, "c", None, **ends)]
    tight = limited(host_migrations_out=1, host_migrations_in=1)
    assert closed(gates(tight, under_way), *parts) == ("host_at_once", f"limit reached: {words}")
    assert admitted(gates(limited(), under_way), *parts)


@pytest.mark.parametrize(
    ("setting", "gate"),
    [
        ("migrations_at_once", "engine_at_once"),
        ("cluster_migrations_at_once", "cluster_at_once"),
        ("host_migrations_out", "host_at_once"),
        ("host_migrations_in", "host_at_once"),
        ("cluster_migrations_per_cycle", "cluster_cycle_limit"),
        ("cluster_migrations_per_hour", "cluster_limit"),
    ],
)
def test_each_limit_counts_all_vms_of_what_was_admitted_before(setting: str, gate: str) -> None:
    parts = (host("h1"), host("h2"), *(vm(name, "h1") for name in "abc"))
    asked = gates(limited(**{"host_migrations_out": 9, "host_migrations_in": 9, setting: 2}))
    assert admitted(asked, *parts, of=step("a", groups=""))
    assert closed(asked, *parts, of=step("b c", groups=""))[0] == gate
    assert admitted(asked, *parts, of=step("b", groups=""))
    assert closed(asked, *parts, of=step("c", groups=""))[0] == gate


def test_a_start_is_no_migration() -> None:
    parts = (*PARTS, vm("other"), pending("other", "h2"))
    assert admitted(gates(limited(migrations_at_once=1, host_migrations_in=1)), *parts, *NEIGHBOURS[:4])


def test_a_group_that_moves_at_once_passes_alone_where_it_is_more_than_the_limit() -> None:
    parts = (host("h1"), host("h2"), host("n1"), vm("a", "h1"), vm("b", "h1"), vm("c", "h1"), vm("d", "h1"))
    whole, single = step("a b c", groups=""), step("d", groups="")
    assert admitted(gates(), *parts, of=whole)
    after_another = gates()
    assert admitted(after_another, *parts, of=single)
    assert closed(after_another, *parts, of=whole)[0] == "host_at_once"
    before_another = gates()
    assert admitted(before_another, *parts, of=whole)
    assert closed(before_another, *parts, of=single)[0] == "host_at_once"


def test_a_cluster_has_a_limit_of_its_own() -> None:
    history = tuple(intent(DONE, 100, vm_id=f"vm{number}") for number in range(120))
    reason = "limit reached: 120 migrations in the last hour (cluster_migrations_per_hour)"
    assert closed(gates(history=history)) == ("cluster_limit", reason)
    assert admitted(gates(history=history[1:]))


def test_what_is_under_way_counts_for_the_hour_and_what_was_refused_does_not() -> None:
    few = limited(cluster_migrations_per_hour=2)
    refused = intent(FAILED, 1, "c", "no room", cause=Cause.TARGET_REFUSED)
    under_way = [intent(ACCEPTED, 3000, "d", None, source="n0", target="n1")]
    parts = (*PARTS, host("n0"), host("n1"), vm("d", "n0"))
    assert admitted(gates(few, under_way, history=(refused,)), *parts)
    assert closed(gates(few, under_way, history=(intent(DONE, 1, "c"),)), *parts)[0] == "cluster_limit"


def test_a_migration_counts_from_its_begin() -> None:
    few = limited(cluster_migrations_per_hour=1)
    long_one = intent(DONE, 10, "c", created=0.0, updated=3595.0)
    assert admitted(gates(few, history=(long_one,)))
    assert closed(gates(few, history=(intent(DONE, 10, "c"),)))[0] == "cluster_limit"


def test_a_cycle_has_a_limit() -> None:
    few = limited(cluster_migrations_per_cycle=2)
    lately = (intent(DONE, 20, "c"), intent(DONE, 59, "d"))
    reason = "limit reached: 2 migrations within this cycle (cluster_migrations_per_cycle)"
    assert closed(gates(few, history=lately)) == ("cluster_cycle_limit", reason)
    assert admitted(gates(few, history=(lately[0], intent(DONE, 61, "d"))))


def refused(age: float, error: str) -> Intent:
    return intent(FAILED, age, error=error, cause=Cause.TARGET_REFUSED)


BACKED_UP = "the engine refused, since it is being backed up; it is asked again after 600 s"
OFTEN = "migrated {} times in the last hour, as often as vm_migrations_per_hour allows"


@pytest.mark.parametrize(
    ("history", "holder", "reason"),
    [
        ([intent(FAILED, 599)], "cooldown", "its migration to h2 failed (it broke); the cooldown is 600 s"),
        ([intent(FAILED, 10, cause=Cause.NEVER_ASKED)], None, ""),
        ([refused(10, "no room")], None, ""),
        ([refused(10, "VM a is being backed up, backup 7")], "backup", BACKED_UP),
        ([refused(601, "VM a is being backed up, backup 7")], None, ""),
        ([refused(70, "backup"), refused(9, "room")], None, ""),
        ([intent(DONE, 119)], "just_moved", "it came to h2 less than 120 s ago"),
        ([intent(DONE, 121)], None, ""),
        ([intent(DONE, 119), refused(9, "no room")], "just_moved", "it came to h2 less than 120 s ago"),
        ([intent(DONE, HOUR_SECONDS - 1)] * 6, "vm_limit", OFTEN.format(6)),
        ([intent(DONE, 200)] * 7, "vm_limit", OFTEN.format(7)),
        ([intent(DONE, HOUR_SECONDS - 1)] * 5, None, ""),
        ([intent(DONE, HOUR_SECONDS + 1)] * 6, None, ""),
        ([intent(DONE, 900)] * 6 + [intent(FAILED, 1)], "cooldown", None),
    ],
)
def test_a_vm_rests_after_failures_after_a_move_and_after_many(
    history: list[Intent], holder: str | None, reason: str | None
) -> None:
    asked = gates(history=tuple(history))
    held = asked.frozen(snapshot(*PARTS))
    assert answer(asked) == (holder and (holder, held["a"]))
    assert held == ({"a": reason or held["a"]} if holder else {})


def test_the_longest_cooldown_lasts_as_long_as_the_vm_keeps_failing() -> None:
    longest = 16 * ENFORCE.cooldown_seconds
    ages = [longest - 1 + number * (longest + ENFORCE.interval_seconds) for number in range(8)]
    remembered = [age for age in ages if age < Gates.reach_seconds(ENFORCE)]
    history = tuple(intent(FAILED, age) for age in reversed(remembered))
    assert "the cooldown is 9600 s" in gates(history=history).frozen(snapshot(*PARTS))["a"]


def test_what_a_plan_has_parked_it_may_take_on_at_once() -> None:
    parked = intent(DONE, 5, source="h3", target="h1")
    there, on = step(source="h3", target="h1", groups="", after=()), STEP
    state, asked = snapshot(*PARTS), gates(history=(parked,))
    assert closed(asked, of=on) == ("just_moved", "it came to h1 less than 120 s ago")
    assert asked.frozen(state, plan(on)) != {}
    assert asked.frozen(state, plan(there, on)) == {}
    assert admitted(asked, of=on, within=plan(there, on))


#: How a migration ended, or that the engine refused it: then it never began.
ENDS = st.sampled_from(["done", "failed", "failed", "refused"])
FIRST = ENFORCE.cooldown_seconds


def ended(end: str, ago: float, seconds: float = 0.0) -> Intent:
    state = IntentState.DONE if end == "done" else IntentState.FAILED
    cause = Cause.TARGET_REFUSED if end == "refused" else None
    return intent(state, ago, cause=cause, updated=seconds)


def facts_of(history: tuple[Intent, ...]) -> Facts:
    return Facts(ENFORCE, NOON, snapshot=snapshot(*PARTS), history=history)


@given(st.lists(ENDS, min_size=1, max_size=7), st.sampled_from([0.5, 1, 2, 4, 8, 15.5, 16, 17]))
def test_a_vm_rests_the_longer_the_more_of_its_last_migrations_failed_in_a_row(
    ends: list[str], rested: float
) -> None:
    """Longer each time, up to sixteen times as long; what the engine refused counts for nothing."""
    last = rested * FIRST - 1
    history = tuple(ended(end, last + 60 * (len(ends) - at)) for at, end in enumerate(ends, 1))
    begun = [(end, one) for end, one in zip(ends, history, strict=True) if end != "refused"]
    row = 0
    for end, _ in begun:
        row = row + 1 if end == "failed" else 0
    pause = min(FIRST * 2 ** (row - 1), 16 * FIRST) if row else 0.0
    facts = facts_of(history)
    held = bool(row) and begun[-1][1].age_seconds < pause
    assert bool(COOLDOWN.vms(facts)) is held
    left = COOLDOWN.seconds_until_open(facts, CLUSTER)
    assert left == (pytest.approx(pause - begun[-1][1].age_seconds) if held else inf)


@given(st.lists(st.tuples(ENDS, st.integers(0, 4000), st.integers(0, 300)), max_size=6), st.integers(1, 4))
def test_after_that_time_fewer_have_begun_lately_and_not_before(
    drawn: list[tuple[str, int, int]], limit: int
) -> None:
    intents = [ended(*one) for one in drawn]
    count = begun_within(intents, 3600)
    assert count == sum(end != "refused" and ago + seconds < 3600 for end, ago, seconds in drawn)
    left = seconds_until_fewer(intents, 3600, limit)
    assert (left == inf) is (count < limit)
    if left != inf:
        later = [begun_ago(one) + left for one in intents if one.cause is None]
        assert sum(ago < 3600 for ago in later) < count
        assert sum(ago - 1 < 3600 for ago in later) == count


def failures(*ages: float) -> tuple[Intent, ...]:
    return tuple(intent(FAILED, age, f"v{age}") for age in ages)


def nine(**fields: Any) -> tuple[Intent, ...]:
    return tuple(intent(FAILED, age, f"v{age}", **fields) for age in range(9, 0, -1))


OPENED, LATELY = failures(1400, 1300, 1200, 1100, 1000), failures(140, 130, 120, 110, 100)
#: VMs of a group that was moved at once: they have numbers at the end of the request's id.
OF_ONE = tuple(intent(FAILED, 10, f"v{at}", correlation_id=f"id-{at}" if at else "id") for at in range(9))
AGAIN = (*OPENED, intent(DONE, 50, "x"))
BREAKER = (
    "migrations failed here of late, the last for this reason: it broke;"
    " the next is tried 900 s after that, or after ovirt-enforcer resume"
)


@pytest.mark.parametrize(
    ("history", "resumed", "failed"),
    [
        pytest.param(failures(1500, 1000, 500, 20, 10), {}, 5, id="many within its time"),
        pytest.param(failures(1000, 500, 20, 10), {}, 0, id="few"),
        pytest.param(failures(1811, 1000, 500, 20, 10), {}, 0, id="one of them too early"),
        pytest.param(failures(2000, 1900, 1850, 1000, 950), {}, 0, id="three of them too early"),
        pytest.param(nine(cause=Cause.TARGET_REFUSED), {}, 0, id="the target was refused"),
        pytest.param(nine(cause=Cause.VM_REFUSED), {}, 0, id="the VM was refused"),
        pytest.param(nine(cause=Cause.NEVER_ASKED), {}, 0, id="never asked"),
        pytest.param(nine(cluster="other"), {}, 0, id="of another cluster"),
        pytest.param(OF_ONE, {}, 0, id="a group that is moved at once fails once"),
        pytest.param((*failures(50, 40, 30, 20), *OF_ONE), {}, 5, id="a group is one of them"),
        pytest.param((*AGAIN, *failures(40, 30, 20, 10)), {}, 0, id="a success closes it"),
        pytest.param((*AGAIN, *failures(45, 40, 30, 20, 10)), {}, 5, id="it opens again"),
        pytest.param((*LATELY, intent(FAILED, 10, "w", updated=500.0)), {}, 5, id="began before it opened"),
        pytest.param((*LATELY, intent(DONE, 10, "w", updated=500.0)), {}, 5, id="success begun before"),
        pytest.param(LATELY, {CLUSTER: 99.0}, 0, id="a person closes it"),
        pytest.param(LATELY, {"": 99.0}, 0, id="a person closes all"),
        pytest.param(LATELY, {"other": 99.0}, 5, id="a person closes another"),
        pytest.param((*LATELY, *failures(50, 40, 30, 20, 10)), {CLUSTER: 99.0}, 5, id="opens after that"),
        pytest.param((*LATELY, *failures(50, 40, 30, 20, 10)), {"": 99.0}, 5, id="opens after all"),
    ],
)
def test_it_opens_after_many_failures_that_count(
    history: tuple[Intent, ...], resumed: dict[str, float], failed: int
) -> None:
    reason = failed and ("breaker", f"{failed} {BREAKER}")
    assert answer(gates(history=history, resumed=resumed)) == (reason or None)


@pytest.mark.parametrize(
    ("after", "pause"),
    [((), 0), ((3000.0,), 0), ((1700.0,), 1800), ((3100.0, 1500.0), 3600), ((9000.0, 7000.0, 3500.0), 7200)],
)
def test_each_failure_of_the_one_that_tries_doubles_the_pause(after: tuple[float, ...], pause: float) -> None:
    opened = failures(10_400, 10_300, 10_200, 10_100, 10_000)
    _, reason = answer(gates(history=(*opened, *failures(*after)))) or ("", "")
    assert (f"the next is tried {pause:.0f} s after that" in reason) is bool(reason) is bool(pause)


def test_one_migration_tries_and_the_others_wait_for_it() -> None:
    asked = gates(history=OPENED)
    parts = (*PARTS, host("n0"), host("n1"), vm("c", "n0"))
    assert admitted(asked, *parts)
    trying, before = (intent(ACCEPTED, age, "c", None, source="n0", target="n1") for age in (5, 1300))
    reason = "circuit breaker open: waiting for the trial migration"
    assert closed(gates(history=OPENED, under_way=[trying]), *parts) == ("breaker", reason)
    assert admitted(gates(history=OPENED, under_way=[before]), *parts)
