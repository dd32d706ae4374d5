"""What was decided, as an administrator asks for it afterwards: all of it, or what concerns a VM or group."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ovirt_enforcer.cli.main import main
from ovirt_enforcer.settings import EnforcerSettings, Mode, recorded_settings
from ovirt_placement.answers.plans import plan_record
from ovirt_placement.model import Snapshot
from ovirt_placement.planning.plan import Plan, Step
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.store.enforcer.history import HistoryStore, RuleAfterwards, StepOutcome
from ovirt_placement.store.enforcer.intents import Cause, Intent, Store
from ovirt_placement.store.enforcer.leader import EnforcerSettingsStore, LeaseStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import APART, CLUSTER, SOFT_APART, TOGETHER, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.placement.cli.documents import defined
from tests.placement.databases import database
from tests.scenarios.stage import START
from tests.stored import prepared

#: A pair that one migration repairs, two that cannot part, and a soft group that nobody is to repair.
STATE = snapshot(
    host("h1", name="alpha"),
    host("h2", name="beta", free_mb=1500),
    vm("v1", "h1", name="web1"),
    vm("v2", "h2", name="web2", migratable=False),
    vm("v3", "h1", name="db1", needs_mb=4096),
    vm("v4", "h1", name="db2", needs_mb=4096),
    vm("v5", "h1", name="calm"),
    vm("v6", "h2", name="other"),
    group("g1", TOGETHER, "v1 v2", name="web"),
    group("g2", APART, "v3 v4", name="db"),
    group("g3", SOFT_APART, "v3 v4", name="nice"),
)


class Bench:
    """A store with the plan of the state, and what is asked about it."""

    def __init__(self, folder: Path, api_url: str, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        url = f"sqlite:///{folder}/store.db"
        self.url = url
        self.configuration = write_configuration(folder, api_url)
        self.store = Store(url, engine="default", patience_seconds=5)
        self.history = HistoryStore(url, engine="default", patience_seconds=5)
        self.leases = LeaseStore(url, engine="default", patience_seconds=5)
        self.settings = EnforcerSettingsStore(url, engine="default", patience_seconds=5)
        self.plan: Plan = make_plan(STATE, CLUSTER)

    def planned(self, state: Snapshot = STATE) -> None:
        self.history.record_plan(
            self.plan.id, CLUSTER, msgspec.to_builtins(plan_record(self.plan, state)), epoch=1
        )

    def prepare(self, name: str = "v1", plan: str | None = None) -> Intent:
        return prepared(
            self.store,
            vm=name,
            cluster=CLUSTER,
            source="h1",
            target="h2",
            correlation_id=name,
            plan=plan or self.plan.id,
            step=1,
        )

    def done(self) -> None:
        intent = self.prepare()
        self.store.accept(intent.id)
        self.store.finish(intent.id)
        self.history.record_outcome(
            [intent.correlation_id], StepOutcome(1, (RuleAfterwards("g1", "web", True),))
        )

    def ask(self, *arguments: str) -> str:
        assert main([*arguments, "--config", str(self.configuration)]) == 0
        return self._capsys.readouterr().out

    def complaint(self, *arguments: str) -> str:
        assert main([*arguments, "--config", str(self.configuration)]) == 2
        return self._capsys.readouterr().err

    def data(self, *arguments: str) -> Any:
        return json.loads(self.ask(*arguments, "--json"))

    def close(self) -> None:
        for part in (self.store, self.history, self.leases, self.settings):
            part.close()


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Bench]:
    server = serve(Engine.from_snapshot(STATE, clock=START))
    made = Bench(tmp_path, server.api_url, capsys)
    yield made
    made.close()
    server.close()


def without_moments(text: str) -> list[str]:
    """Lines without dates and times."""
    return [re.sub(r"\d{4}-\d\d-\d\d \S+ *", "", line).strip() for line in text.splitlines()]


def test_a_plan_stands_with_what_held_it_and_what_it_brought(bench: Bench) -> None:
    bench.planned()
    bench.history.record_held(bench.plan.id, {1: ("window", "only at night")})
    bench.done()
    lines = without_moments(bench.ask("history", "--plans"))
    assert any(f"plan {bench.plan.id}, cluster {CLUSTER}: 1 migration" in line for line in lines)
    assert "1. web1 from alpha to beta: repairs affinity group web" in lines
    assert any(line.startswith("held back once") and "(window): only at night" in line for line in lines)
    assert any(line.endswith("done in 0 s; afterwards web is satisfied") for line in lines)
    assert "Not repaired: db (db1, db2)" in lines
    (reported,) = defined(bench.ask("history", "--plans", "--json"), "History")
    assert (reported["id"], reported["epoch"], reported["document"]["proven"]) == (
        bench.plan.id,
        1,
        bench.plan.proven,
    )
    (migration,) = reported["migrations"]
    assert (migration["state"], migration["outcome"]["gain"]) == ("done", 1)
    assert migration["seconds"] >= 0


@pytest.mark.parametrize(
    ("name", "step", "reported"),
    [
        ("web1", True, True),
        ("v1", True, True),
        ("web", True, True),
        ("db1", False, True),
        ("db", False, True),
        ("calm", False, False),
    ],
)
def test_only_what_concerns_a_vm_or_a_group(bench: Bench, name: str, step: bool, reported: bool) -> None:
    bench.planned()
    bench.done()
    text = bench.ask("history", name)
    assert ("1. web1 from alpha" in text) == ("done in" in text) == step
    assert (bench.plan.id in text) == reported
    assert ("nothing was decided" in text) != reported
    assert [len(one["migrations"]) for one in bench.data("history", name)] == (
        [int(step)] if reported else []
    )


def test_only_what_was_lately_and_migrations_without_a_plan_too(bench: Bench) -> None:
    bench.planned()
    bench.done()
    with database(bench.url) as connection:
        for table in ("plans", "intents"):
            connection.exec_driver_sql(
                f"UPDATE {table} SET created = created - 7200, updated = updated - 7200"
            )
    bench.store.fail(bench.prepare("v5", plan="forgotten").id, "no", Cause.TARGET_REFUSED)
    assert "migration of v5 to h2: failed: refused: no" in bench.ask("history", "--plans", "--since", "1h")
    assert bench.plan.id not in bench.ask("history", "--plans", "--since", "90m")
    assert bench.plan.id in bench.ask("history", "--plans", "--since", "3h")
    reported = defined(bench.ask("history", "--plans", "--since", "1h", "--json"), "History")
    assert [one.get("vm") for one in reported] == ["v5"]
    with pytest.raises(SystemExit):
        bench.complaint("history", "--since", "soon")


def test_a_store_that_does_not_exist_is_said(bench: Bench) -> None:
    assert "no such file" in bench.complaint("history")


def test_why_a_vm_is_not_moved_that_violates_no_rule(bench: Bench) -> None:
    bench.planned()
    assert bench.ask("why-not", "calm") == "calm is on alpha and violates no rule.\n"


def test_why_a_vm_is_not_moved_whose_step_is_held(bench: Bench) -> None:
    bench.planned()
    bench.history.record_held(bench.plan.id, {1: ("window", "only at night")})
    bench.leases.take_lease("me", 600.0)
    text = bench.ask("why-not", "web1")
    assert "It is in affinity group web: together, which is violated (hard):" in text
    assert f"  - plan {bench.plan.id} has step 1 for it: web1 from alpha to beta\n" in text
    assert "step 1 was held back once at" in text
    assert "(window): only at night" in text
    assert "no enforcer" not in text


def test_why_a_vm_is_not_moved_says_where_the_leader_has_other_settings(bench: Bench) -> None:
    bench.planned()
    epoch = bench.leases.take_lease("me", 600.0)
    assert epoch is not None
    here = EnforcerSettings()
    bench.settings.record(epoch, recorded_settings(here))
    assert "other settings" not in bench.ask("why-not", "web1")
    there = recorded_settings(msgspec.structs.replace(here, mode=Mode.ENFORCE, exclude_vms=("web1",)))
    bench.settings.record(epoch, there)
    assert (
        "the enforcer that leads was started with other settings than those here, which this answer goes by:"
        ' exclude_vms ["web1"], here []; mode enforce, here observe\n'
    ) in bench.ask("why-not", "web1")
    bench.leases.release(epoch)
    assert "other settings" not in bench.ask("why-not", "web1")


def test_why_a_vm_is_not_moved_whose_step_waits_for_one_that_is_held(bench: Bench) -> None:
    first = Step(vms=("v5",), sources=("h1",), target="h2", groups=(), repairs=())
    second = Step(vms=("v1",), sources=("h1",), target="h2", groups=("g1",), repairs=("g1",), after=(0,))
    bench.plan = Plan(cluster=CLUSTER, strategy="by hand", steps=(first, second))
    bench.planned()
    bench.history.record_held(bench.plan.id, {1: ("window", "only at night")})
    text = bench.ask("why-not", "web1")
    assert f"plan {bench.plan.id} has step 2 for it: web1 from alpha to beta, after step 1\n" in text
    assert "step 1, which it waits for, was held back once at" in text
    assert "(window): only at night" in text


def test_why_a_vm_is_not_moved_that_cannot_be(bench: Bench) -> None:
    bench.planned()
    found = defined(bench.ask("why-not", "v3", "--json"), "WhyNot")
    assert (found["vm"], found["host"]) == ("db1", "alpha")
    assert "no enforcer runs" in found["because"]
    hard, soft = found["rules"]
    assert (hard["hard"], hard["offends"], soft["hard"], soft["offends"]) == (True, True, False, True)
    assert soft["because"] == [f"plan {bench.plan.id}: repair of soft rules is not enabled"]
    assert len(hard["because"]) >= 1
    assert all(reason.startswith(f"plan {bench.plan.id}: ") for reason in hard["because"])


def test_why_a_vm_is_not_moved_that_the_engine_refused_to_move_or_moves_now(bench: Bench) -> None:
    bench.planned()
    bench.store.fail(bench.prepare().id, "a filter says no", Cause.TARGET_REFUSED)
    text = bench.ask("why-not", "web1")
    assert " to beta: refused: a filter says no" in text
    intent = prepared(
        bench.store,
        vm="v1",
        cluster=CLUSTER,
        source="h1",
        target="h2",
        correlation_id="again",
        plan=bench.plan.id,
        step=1,
    )
    bench.store.accept(intent.id)
    assert "its migration to beta is under way (accepted)" in bench.ask("why-not", "web1")


def test_why_a_vm_is_not_moved_before_anything_was_planned(bench: Bench) -> None:
    bench.leases.take_lease("me", 600.0)
    bench.leases.release(1)
    text = bench.ask("why-not", "web1")
    assert "no plan has been made in its cluster lately" in text
    assert "no enforcer runs" in text


def test_a_vm_that_does_not_exist_is_a_mistake(bench: Bench) -> None:
    bench.planned()
    assert 'no VM "web3"; did you mean "web' in bench.complaint("why-not", "web3")
