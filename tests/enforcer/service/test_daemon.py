"""Each cluster has its turn in a cycle, what was ordered goes on, and a cycle asks the store little."""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from ovirt_enforcer.actions.executor import Executor
from ovirt_enforcer.orders import order
from ovirt_enforcer.planners import PlanQuestion, plan_of
from ovirt_enforcer.service import process
from ovirt_enforcer.service.daemon import Daemon, Watcher
from ovirt_enforcer.service.process import Service
from ovirt_placement import config
from ovirt_placement.answers.plans import plan_record
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.topology import read_snapshot
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.rules import catalogue
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_placement.rules.elements.verdict import Reason, ReasonKind, Request, Verdict
from ovirt_placement.store.enforcer.history import HistoryStore
from ovirt_placement.store.enforcer.intents import IntentState
from ovirt_placement.store.enforcer.leader import Cycle, CycleStore
from ovirt_placement.store.sql.schema import intents
from ovirt_service.daemon import Progress
from ovirt_simulator.core.backend import MigrationFault
from ovirt_simulator.http.server import Server
from tests.builders import CLUSTER, TOGETHER, cluster, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.actions import bench as violated_pair
from tests.enforcer.actions.bench import ENFORCE
from tests.enforcer.gates.judging import step
from tests.enforcer.stand_ins import PlannersHere
from tests.placement.store.conftest import Opening

MONTH = 30 * 24 * 3600.0


def half(name: str) -> tuple[object, ...]:
    """A cluster with a violated pair."""
    return (
        cluster(name),
        host(f"{name}1", cluster=name),
        host(f"{name}2", cluster=name),
        vm(f"{name}-a", f"{name}1", cluster=name),
        vm(f"{name}-b", f"{name}2", cluster=name),
        group(f"{name}-pair", TOGETHER, f"{name}-a {name}-b", cluster=name),
    )


class Bench(violated_pair.Bench):
    """A daemon on a simulated engine with two violated clusters, `one` and `two`."""

    connection: EngineConnection
    daemon: Daemon
    stopping = False

    def read(self) -> Snapshot:
        return read_snapshot(self.connection)

    def cycles(self, number: int = 1) -> None:
        self.cycle(self.daemon, number)

    def migrated(self) -> set[str]:
        """The clusters in which VMs were migrated."""
        return {vm.partition("-")[0] for vm in self.begun()}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with built(tmp_path) as found:
        yield found


@contextmanager
def built(folder: Path, watchers: Sequence[Watcher] = ()) -> Iterator[Bench]:
    found = Bench(folder, snapshot(*half("one"), *half("two")), ENFORCE)
    parts = {"read": lambda: found.read(), "goes_on": lambda: not found.stopping, "watchers": watchers}
    with found.connected() as found.connection, found.enforcing(**parts) as found.daemon:
        yield found
    found.close()


def last_cycle(bench: Bench) -> Cycle:
    with closing(CycleStore(bench.config.store.url, engine="default", create=False)) as cycles:
        last = cycles.last()
    assert last is not None
    return last


@pytest.mark.system
@pytest.mark.parametrize("refused", [False, True])
def test_what_is_left_alone_is_recorded_while_something_waits_for_it(refused: bool, bench: Bench) -> None:
    if refused:
        for name in ("one-a", "one-b"):
            bench.engine.faults.expect(MigrationFault(refuse=True), count=9, identity=name)
    bench.cycles(12)
    assert bench.migrated() == ({"two"} if refused else {"one", "two"})
    assert {one.vm for one in last_cycle(bench).refusals} == ({"one-a", "one-b"} if refused else set())


def test_the_cluster_that_has_waited_longest_comes_first(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To act for another may take as long as a reading is fresh, each time."""
    bench.cycles()
    came: list[str] = []
    monkeypatch.setattr(bench.daemon, "_reconcile", lambda cluster, reading: came.append(cluster))
    bench.daemon._clusters["one"].retry_state.due = -1.0
    bench.daemon._clusters["two"].retry_state.due = -5.0
    bench.cycles()
    assert came == ["two", "one"]


@pytest.mark.parametrize(
    ("share", "fails", "together"), [(0.1, False, True), (0.1, True, False), (0.3, False, False)]
)
def test_a_cluster_that_is_due_soon_is_looked_at_by_the_same_reading(
    share: float, fails: bool, together: bool, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many clusters each had the whole engine read for itself, each interval."""
    bench.cycles()
    came: list[str] = []
    monkeypatch.setattr(bench.daemon, "_reconcile", lambda cluster, reading: came.append(cluster))
    one, two = (bench.daemon._clusters[name].retry_state for name in ("one", "two"))
    settings = bench.daemon.parts.settings
    if fails:
        two.fail(RuntimeError("is tried later"), 0.0, settings.interval_seconds)
    one.due, two.due = -1.0, bench.daemon.parts.clock() + share * settings.interval_seconds
    bench.cycles()
    assert came == (["one", "two"] if together else ["one"])


def test_once_it_is_to_stop_nothing_more_is_begun(bench: Bench) -> None:
    bench.stopping = True
    bench.daemon.run(lambda _: True)
    assert bench.migrated() == set()


def test_one_that_leads_no_more_shows_no_violations(bench: Bench) -> None:
    """Its page of metrics would show for ever what the next leader repairs."""

    def shown() -> set[str]:
        found = bench.daemon.parts.metrics.violations.collect()
        return {sample.labels["cluster"] for family in found for sample in family.samples}

    bench.cycles()
    assert shown() == {"one", "two"}
    bench.daemon.parts.leader.step_down()
    bench.cycles()
    assert shown() == set()


def test_what_holds_a_plan_back_is_recorded_with_it(tmp_path: Path, opening: Opening) -> None:
    with violated_pair.bench(tmp_path, settings={"mode": "observe"}) as played, played.enforcing() as daemon:
        played.cycle(daemon, 2)
        (plan,) = opening(HistoryStore).plans(since_seconds=600)
    assert [one.gate for one in plan.held] == ["mode"]


def test_a_pause_that_comes_after_the_gates_were_asked_puts_steps_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begin = Executor.begin

    def begun(executor: Executor, *asked: Any) -> Any:
        played.pause()
        return begin(executor, *asked)

    caplog.set_level(logging.INFO)
    with violated_pair.bench(tmp_path) as played, played.enforcing() as daemon:
        with monkeypatch.context() as once:
            once.setattr(Executor, "begin", begun)
            played.cycle(daemon, 1)
        assert played.begun() == []
        assert "eve paused everything" in caplog.text
        played.resume()
        played.cycle(daemon, 2)
        assert len(played.begun()) == 1
    assert [one.message for one in caplog.records if one.levelno >= logging.WARNING] == []


REFUSES = ReasonKind("refuses", "does not take VM {vm}", veto=True)


@pytest.mark.system
def test_a_step_that_a_rule_refuses_is_logged_once_and_dropped_and_the_others_go_on(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The search is reported that the hosts would do, and each step finds that they do not."""
    asked = []

    def judge(state: Snapshot, request: Request) -> tuple[Verdict, ...]:
        asked.append(request)
        beforehand = len(request.candidate_hosts) > 1
        reasons = () if beforehand else (Reason(REFUSES, vm=request.vms[0]),)
        return tuple(
            Verdict.of_reasons(place, reasons if place.startswith("one") else ())
            for place in request.candidate_hosts
        )

    rule = Rule(name="ThirdParty", kind=UnitKind.FILTER, ours=False, filter=judge)
    monkeypatch.setattr(catalogue, "RULES", (*catalogue.RULES, rule))
    caplog.set_level(logging.WARNING)
    bench.cycles(25)
    assert asked
    assert bench.migrated() == {"two"}
    dropped = [line for line in caplog.messages if "dropped from the plan" in line]
    assert len(dropped) == len(set(dropped)) > 0
    assert all(line.startswith("cluster one: ") for line in dropped)
    assert all("ThirdParty: does not take VM one-" in line for line in dropped)


def test_what_ended_long_ago_is_forgotten_in_time(bench: Bench) -> None:
    """After a month it is not asked for, and the store must not grow for ever."""
    while len(bench.store.history(within_seconds=2 * MONTH)) < 2:
        bench.cycles()
    with bench.store._transaction() as rows:
        rows.change(intents, updated=intents.c.updated - 1.1 * MONTH)
    bench.now += 3600.0
    bench.cycles()
    assert bench.store.history(within_seconds=2 * MONTH) == ()


@dataclass
class Late:
    """A plan that is made at once, and handed over when the test says so."""

    plan: Plan
    held: bool

    def over(self) -> bool:
        return not self.held

    def result(self) -> Plan:
        return self.plan

    def cancel(self) -> None:
        """There is nothing to end."""


def test_a_plan_that_counted_on_a_migration_which_failed_does_not_report_every_rule_as_satisfied(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.engine.faults.expect(MigrationFault(fail=True), count=2)
    bench.cycles()
    assert bench.migrated() == {"one", "two"}
    late: list[Late] = []

    def start(_: PlannersHere, state: Snapshot, question: PlanQuestion) -> Late:
        late.append(Late(plan_of(state, question), held=True))
        return late[-1]

    monkeypatch.setattr(PlannersHere, "start", start)
    bench.daemon.wake_all()
    bench.cycles()
    assert late
    assert not any(one.plan.steps or one.plan.remaining for one in late)
    while bench.store.open_intents():
        bench.cycles()
    for one in late:
        one.held = False
    bench.cycles(3)
    assert "every rule is satisfied" not in caplog.text


def test_a_plan_is_carried_out_though_something_happens_whenever_one_is_made(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a large cluster VMs start and stop all the time, and a plan takes half a minute."""
    late: list[Late] = []

    def start(_: PlannersHere, state: Snapshot, question: PlanQuestion) -> Late:
        late.append(Late(plan_of(state, question), held=True))
        return late[-1]

    monkeypatch.setattr(PlannersHere, "start", start)
    for _ in range(3):
        bench.cycles()
        bench.daemon.wake_all()
        for one in late:
            one.held = False
    assert bench.migrated() == {"one", "two"}


def test_what_was_applied_goes_on_after_a_restart_in_the_middle_of_a_step(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its migration is under way then: its VM is no longer where the plan says, and has not arrived."""
    hosts = [host(name, free_mb=9_000) for name in ("h1", "h2", "h3", "h4")]
    vms = [vm("a", "h1"), vm("b", "h2", migratable=False), vm("c", "h3"), vm("d", "h4", migratable=False)]
    pairs = group("ab", TOGETHER, "a b"), group("cd", TOGETHER, "c d")
    caplog.set_level(logging.INFO)
    settings = {**ENFORCE, "cluster_migrations_at_once": 1}
    state = snapshot(*hosts, *vms, *pairs)
    with violated_pair.bench(tmp_path, state, settings) as played:
        found = make_plan(state, CLUSTER)
        assert len(found.steps) == 2
        order(played.config, [to_builtins(plan_record(found, state))], set_by="ann")
        with played.enforcing() as daemon:
            daemon.cycle()
        assert len(played.store.open_intents()) == 1
        with played.enforcing() as daemon:
            played.run(daemon, played.now + 60.0)
        assert [(one.plan, one.state) for one in played.intents()] == [(found.id, IntentState.DONE)] * 2
    assert "is not carried out" not in caplog.text


def test_what_was_applied_and_given_up_no_later_enforcer_takes_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The cluster may fit it again hours after it was said that it is not carried out."""
    state = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", "h1"))
    back = Plan(cluster=CLUSTER, strategy="by hand", steps=(step(groups=""),))
    with violated_pair.bench(tmp_path, state) as played:
        order(played.config, [to_builtins(plan_record(back, state))], set_by="ann")
        for there in ("h2", "h1"):
            played.engine.vms.migrate("a", host_id=there)
            played.pass_time(60.0)
            with played.enforcing() as daemon:
                played.cycle(daemon, 3)
        assert played.intents() == []
    assert caplog.text.count("is not carried out") == 1


STATE = snapshot(host("h1"), host("h2"), vm("v1", "h1"), vm("v2", "h2"))
STATEMENTS = 34


def test_a_quiet_cycle_asks_the_store_little(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Counter[str]
) -> None:
    monkeypatch.setenv("OVIRT_PASSWORD", "password")
    monkeypatch.setattr(process, "PlannerProcesses", PlannersHere)
    silent = "[enforcer.notifications.engine]\nkinds = []\n"
    loaded = config.load(write_configuration(tmp_path, server.api_url, more=silent))
    with EngineConnection(loaded.engine) as connection:
        service = Service(loaded, connection, Progress(60.0), stopping=lambda: False)
        for _ in range(2):
            asked.clear()
            service._daemon.cycle()
            service._daemon.wake_all()
            service._daemon._clusters["cluster1"].retry_state.due = 0.0
        service.close()
    assert 0 < asked["statements"] <= STATEMENTS
