"""What people asked for: modes, pauses, exclusions, approvals, patience with a rule, and time windows."""

from datetime import UTC, datetime
from typing import Any

import pytest

from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.gates.gate import HostAction
from ovirt_enforcer.gates.people import moves, rule_key
from ovirt_enforcer.settings import EnforcerSettings, Mode, Window
from ovirt_placement.planning.plan import Plan, Step
from ovirt_placement.rules.catalogue import find_violations
from ovirt_placement.store.enforcer.intents import Cause, IntentKind, IntentState
from ovirt_placement.store.orders import Approval, Pause
from tests.builders import APART, CLUSTER, TOGETHER, Part, cluster, group, host, snapshot, vm
from tests.enforcer.gates.judging import PARTS, admitted, answer, closed, gates, intent, plan, step

OBSERVE, APPROVE, ENFORCE = Mode.OBSERVE, Mode.APPROVE, Mode.ENFORCE
WITH_MODES = (*PARTS[:-1], cluster(name="blue"), group("g", APART, "a b", name="pair"))


def modes(mode: Mode = ENFORCE, **more: Any) -> EnforcerSettings:
    return EnforcerSettings(mode=mode, **more)


OF_BLUE, OF_PAIR = "cluster blue is in mode observe", "affinity group pair is in mode observe"
NOT_SET = 'ovirt-enforcer is in observe mode: nothing is migrated; set mode = "enforce" in [enforcer]'
LENIENT = {"clusters": {"*": ENFORCE}, "groups": {"*": ENFORCE}}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (EnforcerSettings(), NOT_SET),
        (modes(OBSERVE, **LENIENT), NOT_SET),
        (modes(clusters={"blue": OBSERVE}), OF_BLUE),
        (modes(clusters={CLUSTER: OBSERVE}), OF_BLUE),
        (modes(clusters={"*": OBSERVE}), OF_BLUE),
        (modes(clusters={"*": OBSERVE, "blue": ENFORCE}), None),
        (modes(clusters={"red": OBSERVE}), None),
        (modes(groups={"pair": OBSERVE}), OF_PAIR),
        (modes(groups={"g": OBSERVE}), OF_PAIR),
        (modes(groups={"*": OBSERVE}), OF_PAIR),
        (modes(groups={"*": OBSERVE, "pair": ENFORCE}), None),
        (modes(groups={"other": OBSERVE}), None),
        (modes(clusters={"blue": OBSERVE}, groups={"pair": ENFORCE}), OF_BLUE),
        (modes(clusters={"blue": ENFORCE}, groups={"pair": OBSERVE}), OF_PAIR),
    ],
)
def test_the_strictest_mode_counts(settings: EnforcerSettings, why: str | None) -> None:
    assert answer(gates(settings), *WITH_MODES) == (why and ("mode", why))


def test_no_mode_of_a_cluster_or_group_lets_pass_what_waits_for_an_approval() -> None:
    assert closed(gates(modes(APPROVE, **LENIENT)), *WITH_MODES)[0] == "approval"


def test_a_step_that_repairs_nothing_of_a_group_is_none_of_its() -> None:
    settings = modes(groups={"other": OBSERVE})
    assert admitted(gates(settings), of=step(groups="g other", repairs=("g",)))
    assert closed(gates(settings), of=step(groups="g other", repairs=("g", "other")))[0] == "mode"
    assert closed(gates(settings), of=step(groups="g other", repairs=()))[0] == "mode"


def test_what_makes_room_counts_by_what_it_makes_room_for() -> None:
    parts = (*PARTS, vm("c", "h1"), vm("d", "h1"))
    room = step("c", groups="")
    aside = step("d", groups="", after=(0,))
    observed = step("a", after=(1,))
    free = step("b", groups="k", after=(1,))
    settings = modes(groups={"g": OBSERVE})
    assert closed(gates(settings), *parts, of=room, within=plan(room, aside, observed))[0] == "mode"
    assert admitted(gates(settings), *parts, of=room, within=plan(room, aside, observed, free))
    unconcerned = step("b", groups="k")
    useless = plan(room, aside, observed, unconcerned)
    assert closed(gates(settings), *parts, of=room, within=useless)[0] == "mode"
    assert admitted(gates(settings), *parts, of=room)


def test_the_planner_knows_of_groups_that_are_only_observed() -> None:
    state = snapshot(*WITH_MODES)
    why = {"g": "affinity group pair is in mode observe"}
    assert gates(modes(groups={"pair": OBSERVE})).held_groups(state) == why
    assert gates(modes(groups={"pair": APPROVE})).held_groups(state) == {}
    assert gates(modes(OBSERVE, groups={"pair": OBSERVE})).held_groups(state) == {}


BLUE = (*PARTS, cluster(name="blue"))


def pause(where: str = "", **fields: Any) -> Pause:
    defaults: dict[str, Any] = {"cluster_name": where, "reason": "", "set_by": "eve", "until": None}
    return Pause(cluster=where, set_at=1_772_452_800.0, **{**defaults, **fields})


@pytest.mark.parametrize(
    ("paused", "sentence"),
    [
        ((pause(),), "eve paused everything at 2026-03-02 12:00+00:00"),
        ((pause(reason="storage"),), "eve paused everything at 2026-03-02 12:00+00:00 (storage)"),
        ((pause(CLUSTER, cluster_name="blue"),), "eve paused cluster blue at 2026-03-02 12:00+00:00"),
        ((pause("blue"),), "eve paused cluster blue at 2026-03-02 12:00+00:00"),
        ((), None),
    ],
    ids=["everywhere", "with a reason", "by id", "by name", "of another cluster"],
)
def test_a_pause_closes(paused: tuple[Pause, ...], sentence: str | None) -> None:
    assert answer(gates(pauses=(pause("red"), *paused)), *BLUE) == (sentence and ("pause", sentence))


TAG = "ovirt-enforcer-exclude"
NAMED: tuple[Part, ...] = (
    host("h1", name="one"),
    host("h2", name="two"),
    vm("a", "h1", name="alpha"),
    vm("b", "h1"),
    group("g", APART, "a b", name="pair"),
)


def excluding(**lists: Any) -> EnforcerSettings:
    return EnforcerSettings(mode=Mode.ENFORCE, **lists)


@pytest.mark.parametrize(
    ("lists", "reason"),
    [
        ({"exclude_vms": ("alpha",)}, "alpha is among exclude_vms"),
        ({"exclude_vms": ("a",)}, "alpha is among exclude_vms"),
        ({"exclude_hosts": ("one",)}, "host one is among exclude_hosts"),
        ({"exclude_hosts": ("h2",)}, "host two is among exclude_hosts"),
        ({"exclude_groups": ("pair",)}, "affinity group pair is among exclude_groups"),
        ({"exclude_groups": ("g",)}, "affinity group pair is among exclude_groups"),
    ],
)
def test_a_list_opts_out_by_name_and_by_id(lists: dict[str, tuple[str, ...]], reason: str) -> None:
    assert closed(gates(excluding(**lists)), *NAMED) == ("exclusion", reason)


def test_a_tag_opts_out() -> None:
    alone, tagged = f"alpha bears the tag {TAG}", f"host two bears the tag {TAG}"
    assert closed(gates(tagged=frozenset("a")), *NAMED) == ("exclusion", alone)
    on_vm = (*NAMED[:2], vm("a", "h1", name="alpha", tags=(TAG,)), *NAMED[3:])
    assert closed(gates(), *on_vm) == ("exclusion", alone)
    on_host = (NAMED[0], host("h2", name="two", tags=("other", TAG)), *NAMED[2:])
    assert closed(gates(), *on_host) == ("exclusion", tagged)
    assert admitted(gates(excluding(exclude_tag="other-tag")), *on_vm)
    assert admitted(gates(excluding(exclude_tag="")), *on_vm)


def test_the_planner_knows_of_vms_hosts_and_groups() -> None:
    state = snapshot(*NAMED)
    of_host = {"a": "host one is among exclude_hosts", "b": "host one is among exclude_hosts"}
    asked = gates(excluding(exclude_hosts=("one",)))
    assert asked.frozen(state) == of_host
    assert asked.frozen_hosts(state) == {"h1": "host one is among exclude_hosts"}
    asked = gates(excluding(exclude_groups=("pair",), exclude_vms=("b",)))
    assert asked.frozen(state) == {"b": "b is among exclude_vms"}
    assert asked.held_groups(state) == {"g": "affinity group pair is among exclude_groups"}
    assert asked.frozen_hosts(state) == {}


@pytest.mark.parametrize("other", [step(groups="k"), step(groups="", repairs=())], ids=["repairs", "room"])
def test_a_vm_of_an_excluded_group_may_be_moved_for_another(other: Step) -> None:
    assert admitted(gates(excluding(exclude_groups=("pair",))), *NAMED, of=other)


ASKING = EnforcerSettings(mode=Mode.APPROVE)
FIRST, SECOND = step("a"), step("c", "h1", "h3", groups="k")
BOTH = plan(FIRST, SECOND)
WORLD = (*PARTS, host("h3"), vm("c", "h1"))


def word(of: Plan = BOTH, age: float = 100.0, **fields: Any) -> Approval:
    defaults: dict[str, Any] = {"cluster": CLUSTER, "set_by": "eve", "set_at": 0.0, "age_seconds": age}
    return Approval(plan=of.id, moves=moves(of), **{**defaults, **fields})


IN_MODE = "ovirt-enforcer is in approve mode"


def wants(of: Plan) -> str:
    return f'{IN_MODE}: "ovirt-enforcer approve {of.id}" lets it'


def test_each_step_of_the_approved_plan_passes() -> None:
    for one in BOTH.steps:
        assert admitted(gates(ASKING, approvals=(word(),)), *WORLD, of=one, within=BOTH)


@pytest.mark.parametrize("how", ["done", "failed", "refused", "under way"])
def test_an_approval_is_used_up_step_by_step(how: str) -> None:
    state = {"done": IntentState.DONE, "under way": IntentState.ACCEPTED}.get(how, IntentState.FAILED)
    used = intent(state, 50, cause=Cause.TARGET_REFUSED if how == "refused" else None)
    facts: dict[str, Any] = {"under_way": [used]} if how == "under way" else {"history": (used,)}
    for rest in (BOTH, plan(SECOND)):
        assert admitted(gates(ASKING, approvals=(word(),), **facts), *WORLD, of=SECOND, within=rest)
    again = closed(gates(ASKING, approvals=(word(),), **facts), *WORLD, of=FIRST, within=BOTH)
    assert again[0] == "approval"


@pytest.mark.parametrize(
    "other",
    [
        plan(FIRST),
        plan(FIRST, step("c", "h1", "h2", groups="k")),
        plan(FIRST, SECOND, step("b")),
        plan(FIRST, step("c", "h2", "h3", groups="k")),
    ],
    ids=["fewer", "another target", "more", "another source"],
)
def test_a_plan_that_the_cluster_changed_beneath_is_another(other: Plan) -> None:
    reason = f"plan {BOTH.id} was approved of, and the cluster has changed since; {wants(other)}"
    assert closed(gates(ASKING, approvals=(word(),)), *WORLD, of=FIRST, within=other) == ("approval", reason)


DAY, EARLIER = 24 * 3600.0, intent(IntentState.DONE, 200)
EXPIRED = f"the approval of plan {BOTH.id} by eve has expired; {wants(BOTH)}"


@pytest.mark.parametrize(
    ("remembered", "reason"),
    [
        ({}, wants(BOTH)),
        ({"approvals": (word(cluster="other"),)}, wants(BOTH)),
        ({"approvals": (word(),), "history": (EARLIER,)}, None),
        ({"approvals": (word(age=DAY - 1),)}, None),
        ({"approvals": (word(age=DAY),)}, EXPIRED),
        # The command would say that it does not wait.
        ({"refused": {BOTH.id: "eve on host refused plan p"}}, f"{IN_MODE}: eve on host refused plan p"),
    ],
    ids=["none", "of another cluster", "what was done before", "almost expired", "expired", "refused"],
)
def test_a_plan_waits_for_a_word_that_counts(remembered: dict[str, Any], reason: str | None) -> None:
    found = answer(gates(ASKING, **remembered), *WORLD, of=FIRST, within=BOTH)
    assert found == (reason and ("approval", reason))


def test_a_step_of_no_plan_waits_as_one_of_its_own() -> None:
    assert closed(gates(ASKING), *WORLD, of=FIRST) == ("approval", wants(plan(FIRST)))


def test_only_what_is_in_mode_approve_waits() -> None:
    settings = EnforcerSettings(mode=Mode.ENFORCE, groups={"k": Mode.APPROVE})
    assert admitted(gates(settings), *WORLD, of=FIRST, within=BOTH)
    assert closed(gates(settings), *WORLD, of=SECOND, within=BOTH)[0] == "approval"
    state = snapshot(*WORLD)
    assert gates(settings).waits_for_approval(state, BOTH)
    assert not gates(settings).waits_for_approval(state, plan(FIRST))
    assert not gates(settings, approvals=(word(),)).waits_for_approval(state, BOTH)
    assert not gates(settings).waits_for_approval(state, plan())


def test_nothing_waits_for_a_word_that_would_not_let_it_pass() -> None:
    assert not gates(EnforcerSettings(mode=Mode.OBSERVE)).waits_for_approval(snapshot(*WORLD), BOTH)


THRICE = EnforcerSettings(mode=Mode.ENFORCE, hold_cycles=3)
KEY = "vm_affinity hard g"


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_rule_is_held_until_it_was_violated_in_some_cycles(count: int) -> None:
    reason = f"affinity group g was violated in {count} of 3 cycles (hold_cycles)"
    asked = gates(THRICE, violated_cycles={KEY: count} if count else {})
    assert answer(asked) == (("hold", reason) if count < 3 else None)
    assert asked.held_groups(snapshot(*PARTS)) == ({"g": reason} if 0 < count < 3 else {})


@pytest.mark.parametrize("cycles", [(1, 3), (3, 1), (2, 2)])
def test_of_both_halves_of_a_group_the_longer_violated_one_counts(cycles: tuple[int, int]) -> None:
    asked = gates(THRICE, violated_cycles=dict(zip((KEY, "host_affinity soft g"), cycles, strict=True)))
    assert (asked.held_groups(snapshot(*PARTS)) == {}) is (max(cycles) == 3)


@pytest.mark.parametrize(
    ("gate", "asked"),
    [
        ("hold", gates(THRICE, violated_cycles={KEY: 1})),
        ("exclusion", gates(excluding(exclude_groups=("g",)))),
    ],
)
def test_nothing_makes_room_for_a_group_that_waits_or_is_excluded(gate: str, asked: Gates) -> None:
    room, repairs = step("b", groups=""), step("a", after=(0,))
    assert closed(asked, of=room, within=plan(room, repairs))[0] == gate


def test_the_key_of_a_rule_names_its_groups_and_stays_the_same() -> None:
    parts = (host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"), vm("c", "h1"), vm("d", "h2"))
    groups = (group("g", APART, "a b"), group("k", TOGETHER, "b c"), group("m", TOGETHER, "c d"))
    keys = {rule_key(one) for one in find_violations(snapshot(*parts, *groups), CLUSTER)}
    assert keys == {KEY, "vm_affinity hard k m"}
    again = {rule_key(one) for one in find_violations(snapshot(*parts, *reversed(groups)), CLUSTER)}
    assert again == keys


NIGHT = Window(start="0 22 * * 1-5", hours=6, time_zone="Europe/Vienna")


def at(hour: int, minute: int = 0, day: int = 2, **windows: Any) -> Any:
    """The gates in March 2026, whose second is a Monday, by UTC: Vienna is an hour ahead."""
    settings = EnforcerSettings(mode=Mode.ENFORCE, **windows)
    return gates(settings, now=datetime(2026, 3, day, hour, minute, tzinfo=UTC))


@pytest.mark.parametrize(
    ("hour", "minute", "day", "opens"),
    [
        (20, 59, 2, "2026-03-02 22:00+01:00"),
        (21, 0, 2, None),
        (2, 59, 3, None),
        (3, 0, 3, "2026-03-03 22:00+01:00"),
        (2, 59, 7, None),
        (23, 0, 7, "2026-03-09 22:00+01:00"),
    ],
    ids=["before", "at its start", "at its end", "after", "of Friday", "on Saturday"],
)
def test_migrations_begin_within_a_window(hour: int, minute: int, day: int, opens: str | None) -> None:
    reason = f"it is outside of the windows; the next one opens at {opens}"
    assert answer(at(hour, minute, day, windows=(NIGHT,)), *BLUE) == (opens and ("windows", reason))


def test_of_several_windows_one_is_enough() -> None:
    noon = Window(start="0 12 * * *", hours=0.5)
    assert admitted(at(12, 29, windows=(NIGHT, noon)), *BLUE)
    reason = "it is outside of the windows; the next one opens at 2026-03-02 22:00+01:00"
    assert closed(at(12, 30, windows=(noon, NIGHT)), *BLUE) == ("windows", reason)


def test_a_blackout_closes_within_a_window_too() -> None:
    backup = Window(start="30 23 * * *", hours=1, time_zone="Europe/Vienna")
    asked = at(22, 45, windows=(NIGHT,), blackouts=(backup,))
    reason = 'it is within the blackout "30 23 * * *" for 1 h (Europe/Vienna)'
    assert closed(asked, *BLUE) == ("windows", reason)
    assert admitted(at(23, 30, windows=(NIGHT,), blackouts=(backup,)), *BLUE)
    # The cluster is looked at when it ends, though a start of the same blackout comes before that.
    again = Window(start="*/20 * * * *", hours=0.75)
    for blackout in (backup, again):
        of_it = at(22, 45, windows=(NIGHT,), blackouts=(blackout,))
        assert of_it.seconds_left(snapshot(*BLUE), CLUSTER) == 2400 + 300 * (blackout is backup)


#: What brings back a host that is out of service.
BRINGS_BACK = {IntentKind.ACTIVATE_HOST, IntentKind.START_VM}


@pytest.mark.parametrize("kind", IntentKind)
def test_what_is_out_of_service_is_brought_back_at_any_time(kind: IntentKind) -> None:
    action = HostAction(kind, "h2", "a")
    upgraded = (*PARTS, cluster(upgrade_mode=True))
    for gate, asked, parts, passes in (
        ("windows", at(22, windows=(NIGHT,)), BLUE, {*IntentKind}),
        ("windows", at(12, windows=(NIGHT,)), BLUE, BRINGS_BACK),
        ("cluster_upgrade", gates(), upgraded, BRINGS_BACK | {IntentKind.UPGRADE_HOST}),
    ):
        found = answer(asked, *parts, of=action)
        assert (found and found[0]) == (None if kind in passes else gate)


@pytest.mark.parametrize(("named", "passes"), [("blue", False), ("cluster1", False), ("red", True)])
def test_windows_and_blackouts_are_of_clusters(named: str, passes: bool) -> None:
    of_some = Window(start="0 22 * * *", hours=1, clusters=(named,))
    always = Window(start="0 0 * * *", hours=24, clusters=(named,))
    for windows in ({"windows": (of_some,)}, {"blackouts": (always,)}):
        assert (answer(at(12, **windows), *BLUE) is None) is passes
