"""What is recorded of a decision: in the history, in the metrics and in the audit log, the same."""

import json
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import select

from ovirt_enforcer.log import AUDIT_LOG, NoticeKind, audit
from ovirt_enforcer.service.metrics import EnforcerMetrics
from ovirt_enforcer.service.recording import Recorder
from ovirt_enforcer.watchers.verdict import ReservationState, ReservationVerdict
from ovirt_placement.inventory.decision import NoSnapshot
from ovirt_placement.model import Snapshot
from ovirt_placement.store.enforcer.history import HistoryStore, RuleAfterwards
from ovirt_placement.store.enforcer.intents import Cause, Intent, Store
from ovirt_placement.store.sql.schema import metadata, schema_version
from ovirt_service.errors import UserError
from tests import builders
from tests.builders import APART, CLUSTER, SOFT_TOGETHER, TOGETHER, Part, group, host, rule, snapshot, vm
from tests.enforcer.actions import bench as benches
from tests.kit.notices import KeptNotices
from tests.placement.databases import database
from tests.placement.store.conftest import Opening
from tests.stored import prepared


def state(place_of_b: str) -> Snapshot:
    """Two VMs that belong together, and two that must part and do not."""
    return snapshot(
        host("h1", name="red"),
        host("h2"),
        vm("a", "h1", name="web"),
        vm("b", place_of_b),
        vm("c", "h1"),
        vm("d", "h1"),
        group("pair", TOGETHER, "a b", name="the pair"),
        group("apart", APART, "c d"),
    )


def step(*vms: str, repairs: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    rules = [{"id": rule, "name": rule} for rule in repairs]
    return {"vms": [{"id": name, "name": name} for name in vms], "repairs": rules, **fields}


class Bench:
    def __init__(self, folder: Path, opening: Opening) -> None:
        self._audit = folder / "audit.jsonl"
        AUDIT_LOG.open(str(self._audit))
        self.store, self.history = opening(Store), opening(HistoryStore)
        self.metrics, self.reported = EnforcerMetrics(), KeptNotices()
        self.recorder = Recorder(self.history, self.metrics, self.reported, "me")
        self.recorder.observe(state("h2"))

    def prepare(self, name: str, number: int) -> Intent:
        where = {"cluster": CLUSTER, "source": "h2", "target": "h1"}
        return prepared(self.store, name, f"p1-{number}-{name}", plan="p1", step=number, **where)

    def done(self, name: str, number: int) -> None:
        intent = self.prepare(name, number)
        self.recorder.began([intent])
        self.store.accept(intent.id)
        self.recorder.ended(self.store.finish(intent.id))

    def plan(self, *steps: dict[str, Any], name: str = "p1", **fields: Any) -> None:
        document = {"steps": list(steps), "remaining": [], "proven": True, **fields}
        self.recorder.planned(name, CLUSTER, document, 7)

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"ovirt_placement_enforcer_{name}", labels)

    def of_clusters(self) -> set[str]:
        """The names of what is shown of clusters."""
        samples = (sample for family in self.metrics.registry.collect() for sample in family.samples)
        return {
            one.name.removeprefix("ovirt_placement_enforcer_") for one in samples if "cluster" in one.labels
        }

    def audited(self, kind: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self._audit.read_text().splitlines()]
        return [line for line in lines if line["kind"] == kind]

    def outcomes(self) -> list[tuple[int, tuple[RuleAfterwards, ...]] | None]:
        (plan,) = self.history.plans(since_seconds=60)
        found = (migration.outcome for migration in plan.migrations)
        return [None if one is None else (one.gain, one.rules) for one in found]


@pytest.fixture
def bench(tmp_path: Path, opening: Opening) -> Iterator[Bench]:
    yield Bench(tmp_path, opening)
    AUDIT_LOG.open("")


VIOLATED, REPAIRED = NoticeKind.RULE_VIOLATED, NoticeKind.RULE_REPAIRED
PAIR, OTHERS = RuleAfterwards("pair", "pair", True), RuleAfterwards("apart", "apart", False)


def test_a_step_that_repaired_its_rule_says_so_everywhere(bench: Bench) -> None:
    bench.plan(step("b", repairs=("pair",), seconds=12.5))
    bench.done("b", 1)
    bench.recorder.observe(state("h1"))
    assert bench.outcomes() == [(1, (PAIR,))]
    assert bench.value("repairs_predicted_total") == bench.value("repairs_achieved_total") == 1
    assert bench.value("migrations_total", result="done") == 1
    assert bench.value("migration_duration_seconds_count") == 1
    (outcome,) = bench.audited("outcome")
    assert (outcome["plan"], outcome["step"], outcome["predicted_seconds"]) == ("p1", 1, 12.5)
    assert outcome["sentence"] == "step 1 of plan p1 has ended: pair is satisfied"
    (ended,) = bench.audited("ended")
    assert (ended["vm"], ended["to"]) == ({"id": "b", "name": "b"}, {"id": "h1", "name": "red"})
    assert ended["sentence"] == "migration of b to red done"
    assert [line["correlation_id"] for line in bench.audited("begun")] == ["p1-1-b"]


def test_what_has_begun_is_planned_no_more(bench: Bench) -> None:
    bench.plan(step("b", repairs=("pair",)), step("c", repairs=("apart",)))
    assert bench.value("planned_migrations", cluster=CLUSTER) == 2
    bench.done("b", 1)
    assert bench.value("planned_migrations", cluster=CLUSTER) == 1
    bench.recorder.began([bench.prepare("c", 2)])
    assert bench.value("planned_migrations", cluster=CLUSTER) == 0


def test_a_step_that_repaired_nothing_says_so_too(bench: Bench) -> None:
    bench.plan(step("b", repairs=("pair",)), step("c", repairs=("apart",)))
    bench.done("b", 1)
    bench.recorder.ended(bench.store.fail(bench.prepare("c", 2).id, "no room", Cause.TARGET_REFUSED))
    bench.recorder.observe(state("h2"))
    assert bench.outcomes() == [(0, (replace(PAIR, holds=False),)), (0, (OTHERS,))]
    assert (bench.value("repairs_predicted_total"), bench.value("repairs_achieved_total")) == (2, 0)
    assert bench.value("migrations_total", result="refused") == 1


def test_what_others_repaired_is_no_gain_of_a_step_that_failed(bench: Bench) -> None:
    bench.plan(step("b", repairs=("pair",)))
    bench.recorder.ended(bench.store.fail(bench.prepare("b", 1).id, None, Cause.NEVER_ASKED))
    bench.recorder.observe(state("h1"))
    assert bench.value("repairs_achieved_total") == 0
    assert (bench.value("migrations_total", result="never_asked"), bench.outcomes()) == (1, [(0, (PAIR,))])


def test_what_a_step_brought_is_found_out_after_a_restart(bench: Bench) -> None:
    bench.plan(step("b", repairs=("pair",)))
    bench.done("b", 1)
    later = Recorder(bench.history, EnforcerMetrics())
    later.observe(state("h1"))
    assert bench.outcomes() == [(1, (PAIR,))]
    later.observe(state("h2"))  # that it broke again later is not the step's doing
    assert bench.outcomes() == [(1, (PAIR,))]


def test_a_plan_is_reported_once_and_counted_each_time(bench: Bench) -> None:
    for _ in range(3):
        bench.plan(step("a", "b"), step("c"), name="p1")
    assert bench.value("planned_migrations", cluster=CLUSTER) == 3
    bench.plan(name="p2", proven=False)
    assert (len(bench.audited("plan")), bench.value("plans_total", proven="yes")) == (1, 3)
    assert bench.value("plans_total", proven="no") == 1
    assert bench.value("planned_migrations", cluster=CLUSTER) == 0
    assert [plan.id for plan in bench.history.plans(since_seconds=60)] == ["p1"]


def test_a_held_step_is_counted_each_time_and_reported_when_its_gate_is_another(bench: Bench) -> None:
    bench.plan(step("b"))
    for _ in range(3):
        bench.recorder.held("p1", CLUSTER, {1: ("window", "only at night")})
    bench.recorder.held("p1", CLUSTER, {1: ("mode", "observe")})
    bench.recorder.held("p1", CLUSTER, {})
    assert bench.value("gate_closures_total", gate="window") == 3
    assert [line["gate"] for line in bench.audited("held")] == ["window", "mode"]
    (plan,) = bench.history.plans(since_seconds=60)
    assert sorted((one.gate, one.times) for one in plan.held) == [("mode", 1), ("window", 3)]


def test_violations_are_reported_by_family_and_hardness_until_they_are_repaired(bench: Bench) -> None:
    def reported(name: str = CLUSTER) -> float | None:
        return bench.value("violations", cluster=name, family="vm_affinity", hardness="hard")

    bench.recorder.record_violations(state("h2"), CLUSTER)
    assert reported() == 2
    bench.recorder.record_violations(state("h1"), CLUSTER)
    assert reported() == 1
    bench.metrics.keep_only(set())
    assert reported() is None


def test_who_leads_and_how_old_the_knowledge_is(bench: Bench) -> None:
    now = 100.0
    metrics = EnforcerMetrics(lambda: now)
    value = metrics.registry.get_sample_value
    assert value("ovirt_placement_enforcer_snapshot_age_seconds") == float("inf")
    assert value("ovirt_placement_enforcer_snapshot_timestamp_seconds") == 0
    before = time.time()
    metrics.read(97.0)
    assert value("ovirt_placement_enforcer_snapshot_age_seconds") == 3
    read_at = value("ovirt_placement_enforcer_snapshot_timestamp_seconds") or 0
    assert before - 3 <= read_at <= time.time() - 3
    bench.recorder.leading(5)
    assert (bench.value("leader"), bench.value("lease_epoch")) == (1, 5)
    bench.recorder.leading(0)
    assert (bench.value("leader"), bench.value("lease_epoch")) == (0, 0)
    assert [line["epoch"] for line in bench.audited("leader")] == [5, 0]


def test_an_audit_log_that_cannot_be_written_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"\[enforcer\] audit_log: .*absent/log: No such file"):
        AUDIT_LOG.open(str(tmp_path / "absent" / "log"))


def test_an_audit_log_that_is_rotated_goes_on_in_a_new_file(tmp_path: Path) -> None:
    file = tmp_path / "audit"
    AUDIT_LOG.open(str(file))
    audit("one", "first", vm="a")
    file.rename(tmp_path / "audit.1")
    audit("two", "second")
    AUDIT_LOG.open("")
    audit("three", "nobody reads this")
    assert json.loads((tmp_path / "audit.1").read_text())["vm"] == "a"
    assert json.loads(file.read_text())["sentence"] == "second"


@pytest.mark.parametrize(
    ("hard", "soft", "satisfied", "violated", "name"),
    [
        (
            group("pair", TOGETHER, "a b", name="near"),
            group("wish", SOFT_TOGETHER, "a c"),
            *("h1", "h2", "affinity group near"),
        ),
        (
            rule("few", "at_most_per_host", "a b", most=1),
            rule("wish", "exclusive_hosts", "a", hosts="h1", enforcing=False),
            *("h2", "h1", "placement rule few"),
        ),
    ],
    ids=["group", "placement rule"],
)
def test_a_hard_rule_is_reported_when_it_breaks_and_when_it_is_repaired(
    bench: Bench, hard: Part, soft: Part, satisfied: str, violated: str, name: str
) -> None:
    for place in (satisfied, violated, violated, satisfied, satisfied, violated):
        vms = vm("a", "h1"), vm("b", place), vm("c", "h2")
        bench.recorder.record_violations(snapshot(host("h1"), host("h2"), *vms, hard, soft), CLUSTER)
    assert bench.reported.kinds == [VIOLATED, REPAIRED, VIOLATED]
    assert [one.facts for one in bench.reported.notices] == [{"cluster": CLUSTER, "rule": name}] * 3


def test_a_rule_that_is_renamed_ends_by_the_names_that_it_began_with(bench: Bench) -> None:
    for name, title in (("blue", "near"), ("red", "close"), ("red", "")):
        groups = (group("pair", TOGETHER, "a b", name=title),) if title else ()
        parts = builders.cluster(name=name), host("h1"), host("h2"), vm("a", "h1"), vm("b", "h2"), *groups
        bench.recorder.record_violations(snapshot(*parts), CLUSTER)
    assert bench.reported.kinds == [VIOLATED, REPAIRED]
    facts = {"cluster": "blue", "rule": "affinity group near"}
    assert [one.facts for one in bench.reported.notices] == [facts] * 2


def test_an_engine_that_is_away_is_reported_with_the_second_failure_in_a_row(bench: Bench) -> None:
    away, recorder = NoSnapshot("no answer"), bench.recorder
    recorder.failed(away)
    recorder.observe(state("h1"))
    recorder.failed(away)
    assert bench.reported.kinds == []
    for _ in range(5):
        recorder.failed(away)
    recorder.failed(ValueError("something else"))
    recorder.observe(state("h1"))
    recorder.observe(state("h1"))
    assert bench.reported.kinds == [NoticeKind.ENGINE_AWAY, NoticeKind.ENGINE_BACK]


def test_a_breaker_is_reported_once_until_it_has_let_something_through(bench: Bench) -> None:
    recorder = bench.recorder
    for left in (900, 800):
        reasons = {1: ("window", "not now"), 2: ("breaker", f"the next is tried in {left} s")}
        recorder.held("p1", CLUSTER, reasons)
    assert bench.reported.kinds == [NoticeKind.BREAKER_OPEN]
    recorder.began([bench.prepare("a", 1)])
    recorder.held("p1", CLUSTER, {2: ("breaker", "the next is tried in 1800 s")})
    assert bench.reported.kinds == [NoticeKind.BREAKER_OPEN] * 2


def test_the_recorder_reports_leaders_approvals_and_failures(bench: Bench) -> None:
    recorder = bench.recorder
    recorder.leading(3)
    recorder.leading(0)
    recorder.waits("p1", CLUSTER)
    recorder.ended(bench.store.fail(bench.prepare("a", 1).id, "no memory"))
    leads, waits, failed = bench.reported.notices
    assert (leads.kind, leads.facts) == (NoticeKind.LEADER_CHANGED, {"leader": "me", "epoch": "3"})
    assert (waits.kind, failed.kind) == (NoticeKind.PLAN_WAITS, NoticeKind.MIGRATION_FAILED)
    assert (failed.facts["vm"], failed.facts["host"], failed.facts["reason"]) == ("web", "red", "no memory")
    assert (failed.cluster, failed.vm) == (CLUSTER, "a")


def test_rules_that_change_together_are_one_message_that_carries_each(bench: Bench) -> None:
    names = [f"pair{number}" for number in range(1, 9)]
    for place in ("h1", "h2", "h2", "h1"):
        parts = (
            (vm(f"a{name}", "h1"), vm(f"b{name}", place), group(name, TOGETHER, f"a{name} b{name}"))
            for name in names
        )
        bench.recorder.record_violations(snapshot(host("h1"), host("h2"), *chain(*parts)), CLUSTER)
    assert bench.reported.kinds == [VIOLATED, REPAIRED]
    for notice in bench.reported.notices:
        rules = [one.facts["rule"] for one in notice.carried]
        assert sorted(rules) == [f"affinity group {name}" for name in names]
        assert {one.kind for one in notice.carried} == {notice.kind}
        assert notice.facts["rule"] == f"each of 8 rules ({', '.join(rules[:5])} and 3 more)"


def test_one_that_leads_no_more_shows_no_cluster_and_reports_again_what_it_finds_later(bench: Bench) -> None:
    bench.recorder.record_violations(state("h2"), CLUSTER)
    bench.plan(step("b"))
    safe = ReservationState.SAFE
    bench.recorder.judged([ReservationVerdict(cluster=CLUSTER, name=CLUSTER, state=safe, facts={})])
    bench.metrics.pending.set(1)
    shown = {"violations", "planned_migrations", "ha_safe"}
    assert bench.of_clusters() >= shown
    bench.recorder.forget()
    assert bench.of_clusters().isdisjoint(shown)
    assert bench.value("pending_intents") == 0
    bench.recorder.record_violations(state("h2"), CLUSTER)  # others may have repaired it meanwhile
    assert bench.reported.kinds == [VIOLATED] * 2
    bench.recorder.forget()
    bench.recorder.record_violations(state("h1"), CLUSTER)
    assert bench.reported.kinds[2:] == [VIOLATED, REPAIRED]


def test_all_that_an_enforcer_writes_is_of_its_engine_and_what_is_of_others_is_nothing_to_it(
    tmp_path: Path,
) -> None:
    with benches.bench(tmp_path) as made:
        prepared(made.store, "a", source="h1", target="h2")  # of another engine, whose ids are the same
        made.config.engine = replace(made.config.engine, name="east")
        with made.enforcing() as daemon:
            while not made.begun():
                made.cycle(daemon)
        with database(made.config.store.url) as connection:
            tables = (one for one in metadata.sorted_tables if one is not schema_version)
            rows = {
                table.name: connection.execute(select(table.c.engine)).scalars().all() for table in tables
            }
    assert sorted(rows.pop("intents")) == ["default", "east"]
    assert {*chain(*rows.values())} == {"east"}
