"""What recent moves hold back: what the engine refused, what goes round in circles, and what others move."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pytest
from msgspec.structs import replace

from ovirt_enforcer.actions import recent_moves
from ovirt_enforcer.actions.executor import cause_of
from ovirt_enforcer.actions.recent_moves import Backoff, Moves, Restless, digest
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.engine.actions import Rejection
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.catalogue import Violation
from ovirt_placement.store.enforcer.intents import Cause, Intent, IntentState
from ovirt_simulator.scheduler.external import ExternalUnits
from tests.builders import (
    APART,
    CLUSTER,
    SOFT_APART,
    SOFT_TOGETHER,
    TOGETHER,
    cluster,
    engine_event,
    group,
    host,
    snapshot,
    vm,
)
from tests.clock import Clock
from tests.enforcer.actions.bench import bench
from tests.enforcer.gates.judging import intent

#: The first choice is h2, which has most room, and the next best is h3.
TOO_CLOSE = snapshot(
    host("h1", free_mb=4096),
    host("h2", free_mb=32768),
    host("h3", free_mb=16384),
    vm("a", "h1"),
    vm("b", "h1", migratable=False),
    group("apart", APART, "a b"),
)


#: `a` fits on h2 at once, and on h3 only once the three there have left for h4; `b` cannot leave.
CROWDED = snapshot(
    host("h1", memory_mb=20000, free_mb=2000),
    host("h2", memory_mb=10000, free_mb=9500),
    host("h3", memory_mb=20000, free_mb=700),
    host("h4", memory_mb=10000, free_mb=7900),
    vm("a", "h1", needs_mb=8000),
    vm("b", "h1", migratable=False),
    *(vm(f"s{number}", "h3", needs_mb=2500) for number in range(3)),
    vm("s3", "h4", needs_mb=1500, migratable=False),
    group("apart", APART, "a b"),
)


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The hosts that a third-party filter of the engine refuses."""
    hosts = {"h2"}

    def pass_others(_units: Any, _request: Any, _cluster: Any, asked: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(one for one in asked if one.id not in hosts)

    monkeypatch.setattr(ExternalUnits, "filter", pass_others)
    return hosts


@pytest.mark.system
def test_where_the_engine_is_to_choose_the_step_is_done_wherever_the_vm_ends(
    refused: set[str], tmp_path: Path
) -> None:
    settings = {"mode": "enforce", "strategy": "greedy", "target": "engine"}
    with bench(tmp_path, TOO_CLOSE, settings) as made, made.enforcing() as daemon:
        made.cycle(daemon, 10)
        assert made.engine.snapshot().vm_by_id["a"].host == "h3"
        assert [(intent.target, intent.state) for intent in made.intents()] == [("h3", IntentState.DONE)]


@pytest.mark.system
def test_a_refusal_that_passes_is_waited_for_where_the_next_best_takes_four_migrations(
    refused: set[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "ovirt_enforcer")
    settings = {"mode": "enforce", "memory_headroom_percent": 0}
    with bench(tmp_path, CROWDED, settings) as made, made.enforcing() as daemon:
        made.cycle(daemon, 4)
        refused.clear()
        assert [intent.target for intent in made.intents()] == ["h2"]
        while made.now < 700.0:
            made.cycle(daemon)
        ended = [(intent.target, intent.state) for intent in made.intents()]
        assert made.engine.snapshot().vm_by_id["a"].host == "h2"
    assert ended == [("h2", IntentState.FAILED), ("h2", IntentState.DONE)]
    said = [one.getMessage() for one in caplog.records if one.name != "ovirt_enforcer.audit"]
    waits = [line for line in said if "it waits" in line]
    assert len(waits) == 1
    assert "until a may be moved to h2: 1 migration will do then, and 4 would now" in waits[0]


def refusal(target: str, cause: Cause, age: float) -> Intent:
    seen = digest(TOO_CLOSE, "a", ("h1", target))
    return intent(IntentState.FAILED, age, error=FILTERED, target=target, cause=cause, fingerprint=seen)


FILTERED = "Cannot migrate VM. There is no host that satisfies current scheduling constraints"


class Readings(Moves):
    """What readings show, where the engine's events show nothing."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        super().__init__(cast("EngineConnection", None), SECONDS, clock)

    def undone_after(self, intent: Intent, host: str) -> float:
        return 0.0


SECONDS = 900.0


def backoff(
    state: Snapshot, history: Sequence[Intent], restless: Mapping[str, Restless] = MappingProxyType({})
) -> Backoff:
    moves = Readings()
    moves.restless = restless
    return Backoff(EnforcerSettings(), state, history, moves)


VETOED = Rejection(400, "an external filter of the scheduling policy refused the host")


@pytest.mark.parametrize(
    ("rejection", "leaves_out", "waits"),
    [
        (VETOED, True, False),
        (Rejection(400, "VDSM refused"), True, False),
        (Rejection(409, FILTERED, "The host h2 did not satisfy internal filter Memory"), True, False),
        (Rejection(409, "Cannot migrate VM. VM a is being migrated."), False, True),
        (Rejection(403, "User is not authorized to perform this action."), False, True),
    ],
)
def test_a_refusal_is_of_the_target_or_of_any(rejection: Rejection, leaves_out: bool, waits: bool) -> None:
    refused = refusal("h2", cause_of(rejection, "h2"), age=1.0)
    assert bool(backoff(TOO_CLOSE, [refused]).refused_targets) is leaves_out
    assert bool(backoff(TOO_CLOSE, [refused]).refused_vms) is waits


def test_where_the_engine_was_to_choose_the_vm_waits() -> None:
    refused = refusal("h2", cause_of(VETOED, None), age=1.0)
    assert backoff(TOO_CLOSE, [refused]).refused_targets == {}
    assert backoff(TOO_CLOSE, [refused]).refused_vms.keys() == {"a"}


@pytest.mark.parametrize(
    ("times", "age", "still"), [(1, 599, True), (1, 601, False), (2, 1199, True), (2, 1201, False)]
)
def test_each_refusal_in_a_row_doubles_the_pause(times: int, age: float, still: bool) -> None:
    history = [refusal("h2", cause_of(VETOED, "h2"), age)] * times
    assert bool(backoff(TOO_CLOSE, history).refused_targets) is still


def test_what_changes_the_circumstances_and_what_does_not() -> None:
    history = [refusal("h2", cause_of(VETOED, "h2"), 1.0)]

    def still(state: Snapshot) -> bool:
        return bool(backoff(state, history).refused_targets)

    def with_host(**fields: Any) -> Snapshot:
        hosts = tuple(replace(one, **fields) if one.id == "h2" else one for one in TOO_CLOSE.hosts)
        return replace(TOO_CLOSE, hosts=hosts)

    def with_vm(name: str, **fields: Any) -> Snapshot:
        vms = tuple(replace(one, **fields) if one.id == name else one for one in TOO_CLOSE.vms)
        return replace(TOO_CLOSE, vms=vms)

    assert still(with_host(free_mb=1, cpu_percent=99.0))
    assert still(with_vm("a", usage_cpu_percent=99.0, host="h3"))
    assert not still(with_host(tags=("gpu",)))
    assert not still(with_host(status="maintenance"))
    assert not still(with_vm("a", memory_mb=2048))
    assert not still(with_vm("b", host=None, status="down"))
    assert not still(replace(TOO_CLOSE, affinity_groups=()))


def test_many_refusals_in_a_row_let_the_vm_rest() -> None:
    history = [refusal(f"h{number}", cause_of(VETOED, "h"), 1.0) for number in range(2, 8)]
    assert backoff(TOO_CLOSE, history).refused_vms.keys() == {"a"}
    assert backoff(TOO_CLOSE, history[:5]).refused_vms == {}


STATE = snapshot(
    host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1", migratable=False), group("apart", SOFT_APART, "a b")
)


def at(place: str, state: Snapshot = STATE) -> Snapshot:
    return replace(state, vms=tuple(replace(one, host=place) if one.id == "a" else one for one in state.vms))


def done(age: float) -> Intent:
    return intent(IntentState.DONE, age, error=None, fingerprint=digest(STATE, "a", ("h1", "h2")))


def test_a_vm_that_somebody_moved_back_is_left_alone_for_a_while() -> None:
    assert backoff(at("h1"), [done(100.0)]).undone.keys() == {"a"}
    assert (backoff(at("h1"), [done(901.0)]).undone, backoff(at("h2"), [done(100.0)]).undone) == ({}, {})


def test_longer_each_time() -> None:
    history = [done(3000.0), done(1700.0)]
    assert backoff(at("h1"), history).undone["a"].reason.endswith("it is left alone for 1800 s")
    assert backoff(at("h1"), [done(3000.0), done(1801.0)]).undone == {}


def test_a_change_of_the_cause_ends_it() -> None:
    for place, kept in (("h1", "undone"), ("h2", "left_behind")):
        changed = replace(at(place), affinity_groups=())
        assert getattr(backoff(changed, [done(100.0)]), kept) == {}


@pytest.mark.parametrize(
    ("others", "after", "by"),
    [
        ((), 0.0, "the engine's events do not show by whom"),
        ((-50.0,), 0.0, "moved at -50"),
        ((20.0, 40.0), 30.0, "moved at 40"),
    ],
    ids=["nobody", "before ours", "after ours"],
)
def test_who_undid_it_and_when_the_events_of_the_engine_show(
    monkeypatch: pytest.MonkeyPatch, others: Sequence[float], after: float, by: str
) -> None:
    ours = replace(done(100.0), correlation_id="ours", updated=10.0)  # it took 10 s
    moved = sorted([*((at, f"moved at {at:.0f}", None) for at in others), (0.0, "ours", "ours")])
    found = [
        engine_event(62, id=number, time=at, description=text, correlation_id=whose, vm="a")
        for number, (at, text, whose) in enumerate(moved)
    ]
    monkeypatch.setattr(recent_moves.events, "find_migration_events", lambda *_: found)
    moves = Moves(cast("EngineConnection", None), SECONDS, lambda: 0.0)
    assert (moves.undone_after(ours, "h1"), moves.who_moved("a", {"ours"})) == (after, by)


def test_a_vm_is_not_sent_back_to_where_it_was_taken_from() -> None:
    assert backoff(at("h2"), [done(100.0)]).left_behind.keys() == {("a", "h1")}
    assert backoff(at("h2"), [done(901.0)]).left_behind == {}


def ours(target: str, state: IntentState, age_seconds: float = 0.0) -> Intent:
    return intent(state, age_seconds, "v", None, target=target)


#: A VM is looked at once a minute: its host, or `-`; after `/` the host that is drained. We are moving it
#: there (`+`), have just done so (`=`), or have long ago moved it to h2, and have failed to h1 (`~`).
SIGHTS = {
    "it rests": ("h1 h1 h1", "000"),
    "it goes on": ("h1 h2 h3", "000"),
    "it comes back once": ("h1 h2 h1", "000"),
    "it is started anywhere": ("h1 - h2 - h1 - h2", "0000000"),
    "it is started where it was": ("h1 h2 - h1 h2", "00000"),
    "hosts are drained one after another": ("h1 h2/h1 h1/h2 h2/h1 h1/h2", "00000"),
    "it comes back, and rests long enough in the end": (f"h1 h2 h1{' h2' * 20}", f"000{'1' * 15}{'0' * 5}"),
    "our own migrations do not count": (f"h1{' h2+ h1=' * 3}", "0000000"),
    "that we once moved it there explains nothing of today": ("h1~ h2~ h1~ h2~", "0001"),
    "what is undone after a migration of ours counts": ("h1 h2 h1+ h2", "0001"),
}


@pytest.mark.parametrize(("sights", "restless"), SIGHTS.values(), ids=SIGHTS)
def test_who_comes_back_again_and_again_is_restless(sights: str, restless: str) -> None:
    clock, found = Clock(), ""
    moves = Readings(clock)
    for sight, drained in (each.partition("/")[::2] for each in sights.split()):
        place, how, clock.now = sight[:2].strip("-"), sight[2:], clock.now + 60.0
        hosts = (host(name, status="maintenance" if name == drained else "up") for name in ("h1", "h2", "h3"))
        known = {
            "+": [ours(place, IntentState.ACCEPTED)],
            "=": [ours(place, IntentState.DONE, 30.0)],
            "~": [ours("h2", IntentState.DONE, 4000.0), ours("h1", IntentState.FAILED)],
        }.get(how, [])
        moves.observe(snapshot(*hosts, vm("v", place or None), vm("w", "h1")), known)
        found += str(int("v" in moves.restless))
        assert "w" not in moves.restless
    assert found == restless


def found(state: Snapshot) -> Mapping[str, Restless]:
    moves = Readings()
    others = [one for one in state.vms if one.id != "v"]
    for place in ("h1", "h2", "h1", "h2"):
        moves.observe(snapshot(*state.hosts, vm("v", place), *others), ())
    moves.observe(state, ())
    return moves.restless


def test_it_is_left_alone_and_so_are_its_soft_groups_but_no_hard_rule() -> None:
    groups = (
        group("near", SOFT_TOGETHER, "v w"),
        group("far", SOFT_APART, "v x"),
        group("others", SOFT_APART, "w x"),
        group("firm", APART, "v w"),
    )
    state = snapshot(host("h1"), host("h2"), vm("v", "h1"), vm("w", "h2"), vm("x", "h2"), *groups)
    assert backoff(state, (), found(state)).frozen() == {
        "v": "the engine or a user moves it back and forth between h1 and h2"
    }
    assert set(backoff(state, (), found(state)).spared(CLUSTER)) == {"near", "far"}


def test_a_hard_rule_that_it_breaks_is_repaired() -> None:
    hard = group("firm", TOGETHER, "v w")
    state = snapshot(host("h1"), host("h2"), vm("v", "h1"), vm("w", "h2"), hard)
    assert backoff(state, (), found(state)).frozen() == {}


def test_a_cluster_whose_rules_cannot_be_judged_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    state = snapshot(cluster("one"), cluster("two"), host("h1", cluster="one"), vm("a", "h1", cluster="one"))
    restless = {"a": Restless(("h1", "h2", "h1"), 1.0, 1.0)}
    held = backoff(state, (), restless)

    def fail(snapshot: Snapshot, cluster: str) -> list[Violation]:
        raise ValueError(cluster)

    monkeypatch.setattr(recent_moves, "find_violations", fail)
    assert held.frozen("two") == {}
    with pytest.raises(ValueError, match="one"):
        held.frozen("one")
