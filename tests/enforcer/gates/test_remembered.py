"""What gates remember is in the store: another process finds it all, and a word said there counts at once."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ovirt_enforcer.gates.admission import Gates
from ovirt_enforcer.memory import Memory, Stores
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement import config
from ovirt_placement.config import Config
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan, Step
from ovirt_placement.store.enforcer.intents import IntentState, Store
from ovirt_placement.store.enforcer.leader import LeaseStore
from ovirt_placement.store.orders import ApprovalStore, PauseStore
from ovirt_placement.store.sql.access import LeaseLost
from ovirt_placement.store.sql.database import StoreAway
from tests.builders import CLUSTER, snapshot, vm
from tests.placement.store.conftest import Opening
from tests.stored import prepared

from .judging import NOON, PARTS, STEP, admitted, closed, plan, step

DONE, FAILED = IntentState.DONE, IntentState.FAILED


def configured(folder: Path, text: str = 'mode = "enforce"') -> Config:
    file = folder / "placement.toml"
    file.write_text(f'[store]\nurl = "sqlite:///{folder}/store.db"\n[enforcer]\n{text}\n', "utf-8")
    return config.load(file, {})


@contextmanager
def remembering(
    loaded: Config, epoch: Callable[[], int] | None = None, *, create: bool = True, **how: Any
) -> Iterator[Memory]:
    with closing(Stores(loaded, epoch, create=create)) as stores:
        yield Memory(loaded.section("enforcer", EnforcerSettings), stores, **how)


def why(gates: Gates, one: Step = STEP, of: Plan | None = None, state: Snapshot | None = None) -> str:
    return closed(gates, of=one, within=of, state=state)[0]


def test_a_pause_counts_from_the_next_reading_on(tmp_path: Path, opening: Opening) -> None:
    loaded = configured(tmp_path)
    with remembering(loaded) as memory:
        before = memory.gates()
        assert admitted(memory.gates())
        pauses = opening(PauseStore)
        pauses.pause(CLUSTER, cluster_name="blue", reason="", set_by="eve", seconds=None)
        assert (why(memory.gates()), why(before)) == ("pause", "pause")
        pauses.resume(CLUSTER, set_by="eve")
        assert admitted(memory.gates())


@pytest.mark.parametrize(
    ("gate", "before"),
    [
        ("movement", {"a": None}),
        ("cooldown", {"a": FAILED}),
        ("just_moved", {"a": DONE}),
        ("breaker", dict.fromkeys("12", FAILED)),
        ("cluster_limit", dict.fromkeys("123", DONE)),
    ],
)
def test_a_restart_forgets_nothing(
    tmp_path: Path, opening: Opening, gate: str, before: dict[str, IntentState | None]
) -> None:
    loaded = configured(tmp_path, 'mode = "enforce"\nbreaker_failures = 2\ncluster_migrations_per_hour = 3')
    store = opening(Store)
    for name, state in before.items():
        one = prepared(store, vm=name, cluster=CLUSTER, correlation_id=name)
        if state is DONE:
            store.accept(one.id)
            store.finish(one.id)
        elif state is FAILED:
            store.fail(one.id, "it broke")
    with remembering(loaded) as memory:
        assert why(memory.gates()) == gate


def test_a_restart_forgets_no_cycle_in_which_a_rule_was_violated(tmp_path: Path) -> None:
    loaded = configured(tmp_path, 'mode = "enforce"\nhold_cycles = 3\ninterval_seconds = 0.001')
    state = snapshot(*PARTS)
    with remembering(loaded) as memory:
        memory.observe(state, CLUSTER)
    for count in (1, 2):
        with remembering(loaded) as memory:
            reason = f"affinity group g was violated in {count} of 3 cycles (hold_cycles)"
            assert memory.gates().held_groups(state) == {"g": reason}
            assert why(memory.gates()) == "hold"
            memory.observe(state, CLUSTER)
    with remembering(loaded) as memory:
        before = memory.gates()
        assert memory.gates().admit(state, CLUSTER, STEP)
        memory.observe(snapshot(*PARTS[:-1]), CLUSTER)
        assert why(before) == "hold"


def test_a_plan_waits_is_approved_of_and_used_up_over_restarts(tmp_path: Path, opening: Opening) -> None:
    loaded = configured(tmp_path, 'mode = "approve"')
    state, both = snapshot(*PARTS), plan(STEP, step("b", groups=""))
    with remembering(loaded) as memory:
        gates = memory.gates()
        assert why(gates, STEP, both) == "approval"
        assert memory.offer(gates, state, both)
        assert not memory.offer(memory.gates(), state, both)
    approvals = opening(ApprovalStore)
    (waiting,) = approvals.waiting()
    assert waiting.plan == both.id
    assert "a from h1 to h2" in waiting.text
    assert approvals.approve(both.id, set_by="eve")
    intents = opening(Store)
    with remembering(loaded) as memory:
        gates = memory.gates()
        assert not memory.offer(gates, state, both)
        assert gates.admit(state, CLUSTER, STEP, both)
        begun = prepared(intents, vm="a", cluster=CLUSTER, source="h1", target="h2", correlation_id="1")
        intents.accept(begun.id)
        intents.finish(begun.id)
    moved = snapshot(*PARTS[:2], vm("a", "h2"), *PARTS[3:])
    with remembering(loaded) as memory:
        changed = plan(step("b", target="h3", groups=""))
        assert why(memory.gates(), changed.steps[0], changed, moved) == "approval"
        assert memory.offer(memory.gates(), moved, changed)
        assert [one.plan for one in approvals.waiting()] == [changed.id]
        assert not memory.offer(memory.gates(), moved, plan(both.steps[1]))
        assert approvals.waiting() == ()
        assert memory.gates().waits_for_approval(moved, plan(STEP))


def test_what_ends_between_two_readings_counts_once(
    tmp_path: Path, opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    twice = 'mode = "enforce"\nvm_migrations_per_hour = 2\ncooldown_after_success_seconds = 0'
    loaded = configured(tmp_path, twice)
    store = opening(Store)
    one = prepared(store, vm="a", cluster=CLUSTER, source="h1", target="h2", correlation_id="1")
    store.accept(one.id)
    read = Store.history

    def end_then_read(reader: Store, **how: Any) -> Any:
        if store.open_intents():
            store.finish(one.id)
        return read(reader, **how)

    monkeypatch.setattr(Store, "history", end_then_read)
    with remembering(loaded) as memory:
        gates = memory.gates()
        assert gates.frozen(snapshot(*PARTS)) == {}
        assert admitted(gates)


def test_tags_are_asked_for_where_the_setting_asks_for_them(tmp_path: Path) -> None:
    with remembering(configured(tmp_path), ask_tagged=lambda: frozenset("a")) as memory:
        assert why(memory.gates()) == "exclusion"
    none = configured(tmp_path, 'mode = "enforce"\nexclude_tag = ""')
    with remembering(none, ask_tagged=lambda: frozenset("a")) as memory:
        assert admitted(memory.gates())


def test_windows_are_judged_by_the_time_of_day_at_the_reading(tmp_path: Path) -> None:
    window = 'mode = "enforce"\n[[enforcer.windows]]\nstart = "30 12 * * *"\nhours = 1'
    now = [NOON]
    with remembering(configured(tmp_path, window), clock=lambda: now[0]) as memory:
        assert why(memory.gates()) == "windows"
        now[0] = datetime(2026, 3, 2, 12, 30, tzinfo=NOON.tzinfo)
        assert admitted(memory.gates())


def test_a_reader_makes_no_store(tmp_path: Path) -> None:
    with remembering(configured(tmp_path), create=False) as memory, pytest.raises(StoreAway):
        memory.gates()
    assert not (tmp_path / "store.db").exists()


def test_who_leads_no_more_writes_nothing_of_what_gates_remember(tmp_path: Path, opening: Opening) -> None:
    loaded = configured(tmp_path, 'mode = "approve"\nhold_cycles = 3')
    leases = opening(LeaseStore)
    former = leases.take_lease("first", 600.0)
    assert former is not None
    state, repairing = snapshot(*PARTS), Plan(cluster=CLUSTER, strategy="by hand", steps=(STEP,))
    with remembering(loaded, epoch=lambda: former) as memory:
        memory.observe(state, CLUSTER)
        assert memory.offer(memory.gates(), state, repairing)
        leases.release(former)
        assert leases.take_lease("second", 600.0) == former + 1
        for write in (
            lambda: memory.observe(state, CLUSTER),
            lambda: memory.offer(memory.gates(), state, repairing),
            lambda: memory.offer(memory.gates(), state, Plan(cluster=CLUSTER, strategy="by hand")),
        ):
            with pytest.raises(LeaseLost):
                write()
