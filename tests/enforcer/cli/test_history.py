"""What was decided, as an administrator asks for it afterwards: plans, totals, trends, and why-not."""

import re
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import ovirt_enforcer
from ovirt_enforcer.history import KnownHistory, why_not
from ovirt_enforcer.settings import EnforcerSettings, Mode, recorded_settings
from ovirt_placement.answers.document import Shown
from ovirt_placement.answers.plans import plan_record
from ovirt_placement.answers.question import question_named
from ovirt_placement.answers.status.history import MOST_POINTS
from ovirt_placement.model.snapshot import STORED
from ovirt_placement.planning.plan import Plan, Step
from ovirt_placement.planning.planner import make_plan
from ovirt_placement.store.enforcer.history import HistoryStore, RuleAfterwards, StepOutcome
from ovirt_placement.store.enforcer.intents import Cause, Intent, Store
from ovirt_placement.store.enforcer.leader import EnforcerSettingsStore, LeaseStore
from ovirt_placement.store.enforcer.observations import SampleStore
from tests.builders import APART, CLUSTER, SOFT_APART, TOGETHER, group, host, snapshot, vm
from tests.enforcer.conftest import Ask
from tests.placement.databases import database
from tests.placement.store.conftest import Opening
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

    def __init__(self, opening: Opening, url: str, run: Ask) -> None:
        self.url, self._run = url, run
        self.store, self.history, self.samples = opening(Store), opening(HistoryStore), opening(SampleStore)
        self.leases, self.settings = opening(LeaseStore), opening(EnforcerSettingsStore)
        self.plan: Plan = make_plan(STATE, CLUSTER)

    def planned(self, plan_id: str = "", cluster: str = CLUSTER) -> None:
        plan = replace(self.plan, cluster=cluster)
        document = msgspec.to_builtins(plan_record(plan, STATE))
        self.history.record_plan(plan_id or plan.id, cluster, document, epoch=1)

    def planned_again(self, number: int) -> str:
        """Another plan of the same steps, a minute younger than the one before."""
        plan_id = f"plan{number:02}"
        self.planned(plan_id)
        self.change(f"plans SET updated = updated - {(60 - number) * 60} WHERE id = '{plan_id}'")
        return plan_id

    def held(self) -> None:
        self.history.record_held(self.plan.id, {1: ("window", "only at night")})

    def prepare(self, name: str = "v1", plan: str = "", correlation_id: str = "") -> Intent:
        of: dict[str, Any] = {"cluster": CLUSTER, "plan": plan or self.plan.id, "step": 1}
        return prepared(self.store, name, correlation_id or name, **of)

    def done(self) -> None:
        intent = self.prepare()
        self.store.accept(intent.id)
        self.store.finish(intent.id)
        outcome = StepOutcome(1, (RuleAfterwards("g1", "web", True),))
        self.history.record_outcome([intent.correlation_id], outcome)

    def sampled(self, hours_ago: int, hard: int, soft: int = 0, cluster: str = CLUSTER) -> None:
        self.samples.record(cluster, f"name of {cluster}", hard=hard, soft=soft)
        self._age_sample(hours_ago, cluster)

    def judged(self, hours_ago: int, lost: int) -> None:
        self.samples.record(
            CLUSTER, f"name of {CLUSTER}", ha_failures=1, ha_survived=0, ha_not_restarted=lost
        )
        self._age_sample(hours_ago, CLUSTER)

    def _age_sample(self, hours_ago: int, cluster: str) -> None:
        """The row that was just written becomes older."""
        self.change(
            f"samples SET hour = hour - {hours_ago} WHERE cluster = '{cluster}'"
            f" AND hour = (SELECT max(hour) FROM samples WHERE cluster = '{cluster}')"
        )

    def change(self, what: str) -> None:
        with database(self.url) as connection:
            connection.exec_driver_sql(f"UPDATE {what}")

    def ask(self, line: str) -> str:
        said = self._run(line)
        assert said.status == 0, said.err
        return said.out

    def complaint(self, line: str) -> str:
        said = self._run(line)
        assert (said.status, said.out) == (2, "")
        return said.err

    def document(self, line: str, definition: str) -> Any:
        return self._run(f"{line} --json").document(definition)

    def lines(self, line: str) -> list[str]:
        """Without dates and times."""
        return [re.sub(r"\d{4}-\d\d-\d\d \S+ *", "", one).strip() for one in self.ask(line).splitlines()]


@pytest.fixture
def bench(opening: Opening, url: str, ask: Ask, file: object) -> Bench:
    return Bench(opening, url, ask)


def test_a_plan_stands_with_what_held_it_and_what_it_brought(bench: Bench) -> None:
    bench.planned()
    bench.held()
    bench.done()
    lines = bench.lines("history --plans")
    assert any(f"plan {bench.plan.id}, cluster {CLUSTER}: 1 migration" in line for line in lines)
    assert "1. web1 from alpha to beta: repairs affinity group web" in lines
    assert any(line.startswith("held back once") and "(window): only at night" in line for line in lines)
    assert any(line.endswith("done in 0 s; afterwards web is satisfied") for line in lines)
    assert "Not repaired: db (db1, db2)" in lines
    (found,) = bench.document("history --plans", "History")
    known = (bench.plan.id, 1, bench.plan.proven)
    assert (found["id"], found["epoch"], found["document"]["proven"]) == known
    (migration,) = found["migrations"]
    assert (migration["state"], migration["outcome"]["gain"]) == ("done", 1)
    assert migration["seconds"] >= 0


@pytest.mark.parametrize(
    ("asked", "step", "plan"),
    [
        ("web1", True, True),
        ("v1", True, True),
        ("web", True, True),
        ("db1", False, True),
        ("db", False, True),
        ("calm", False, False),
        ("--vm web1", True, True),
        ("--vm calm", False, False),
        ("--host alpha", True, True),
        ("--host h2", True, True),
    ],
)
def test_only_what_concerns_a_vm_a_host_or_a_group(bench: Bench, asked: str, step: bool, plan: bool) -> None:
    bench.planned()
    bench.done()
    text = bench.ask(f"history {asked}")
    assert ("1. web1 from alpha" in text) == ("done in" in text) == step
    assert (bench.plan.id in text, "nothing was decided" in text) == (plan, not plan)
    found = bench.document(f"history {asked}", "History")
    assert [len(one["migrations"]) for one in found] == ([int(step)] if plan else [])


def test_what_is_renamed_is_found_by_both_names(bench: Bench) -> None:
    bench.planned()
    document = msgspec.to_builtins(plan_record(bench.plan, STATE))
    former = msgspec.json.encode(document).replace(b"web1", b"former")
    bench.history.record_plan("older", CLUSTER, msgspec.json.decode(former), epoch=1)
    bench.prepare(plan="forgotten")
    for name in ("former", "web1"):
        lines = bench.lines(f"history --vm {name}")
        steps = {f"1. {one} from alpha to beta: repairs affinity group web" for one in ("former", "web1")}
        assert steps <= {*lines}
        assert "migration of v1 to h2: has not ended" in lines


def test_where_the_engine_chose_another_host_that_is_said(bench: Bench) -> None:
    bench.planned()
    intent = bench.store.accept(bench.prepare().id)
    bench.store.finish(intent.id, "h1")
    assert "on alpha, which the engine chose: done in 0 s" in bench.lines("history --plans")
    bench.change("intents SET target = 'h3'")
    assert "on h3, which the engine chose: done in 0 s" in bench.lines("history --host h3")


def test_only_what_was_lately_and_migrations_without_a_plan_too(bench: Bench) -> None:
    bench.planned()
    bench.done()
    for table in ("plans", "intents"):
        bench.change(f"{table} SET created = created - 7200, updated = updated - 7200")
    bench.store.fail(bench.prepare("v5", plan="forgotten").id, "no", Cause.TARGET_REFUSED)
    assert "migration of v5 to h2: failed: refused: no" in bench.ask("history --plans --since 1h")
    assert bench.plan.id not in bench.ask("history --plans --since 90m")
    assert bench.plan.id in bench.ask("history --plans --since 3h")
    assert [one.get("vm") for one in bench.document("history --plans --since 1h", "History")] == ["v5"]


def test_a_migration_whose_plan_is_forgotten_is_found_by_name(bench: Bench) -> None:
    bench.prepare("v5", plan="forgotten")
    assert "migration of v5 to h2" in bench.ask("history --vm calm")
    assert "migration of v5 to h2" in bench.ask("history --host beta")
    assert "nothing was decided" in bench.ask("history --vm other")


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("history --since soon", "soon"),
        ("history --vm wbe1", 'no VM "wbe1"; did you mean "web1"'),
        ("history --vm web", 'no VM "web"; did you mean "web'),  # of a group alone
        ("history --host alhpa", 'no host "alhpa"; did you mean "alpha"'),
        ("history clam", 'no VM or affinity group "clam"; did you mean "calm"'),
        ("history --plans --cluster clam", 'no cluster "clam"'),
        ("history --cluster clustr1", 'no cluster "clustr1"; did you mean "cluster1"'),
        ("why-not web3", 'no VM "web3"; did you mean "web'),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest(bench: Bench, line: str, error: str) -> None:
    bench.planned()
    assert error in bench.complaint(line)


def test_a_store_that_does_not_exist_is_said(bench: Bench) -> None:
    assert "no such file" in bench.complaint("history")


def test_why_a_vm_is_not_moved_that_violates_no_rule(bench: Bench) -> None:
    bench.planned()
    assert bench.ask("why-not calm") == "calm is on alpha and violates no rule.\n"


def test_a_rule_that_cannot_be_judged_yet_is_not_said_to_be_satisfied() -> None:
    state = replace(snapshot(host("h1"), vm("a", "h1")), unread=(STORED,))
    answer = why_not(KnownHistory(state, {}, {}, (), (), (), None), state.vm_by_id["a"])
    first, *unknown = question_named("why-not", ovirt_enforcer).text(answer, Shown())
    assert first == "a is on h1 and violates no rule that could be judged."
    assert unknown == [f"Not known yet: {why}." for why in answer.unknown] != []


def test_why_a_vm_is_not_moved_whose_step_is_held(bench: Bench) -> None:
    bench.planned()
    bench.held()
    bench.leases.take_lease("me", 600.0)
    text = bench.ask("why-not web1")
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
    assert "other settings" not in bench.ask("why-not web1")
    bench.settings.record(epoch, recorded_settings(replace(here, mode=Mode.ENFORCE, exclude_vms=("web1",))))
    assert (
        "the enforcer that leads was started with other settings than those here, which this answer goes by:"
        ' exclude_vms ["web1"], here []; mode enforce, here observe\n'
    ) in bench.ask("why-not web1")
    bench.leases.release(epoch)
    assert "other settings" not in bench.ask("why-not web1")


def test_why_a_vm_is_not_moved_whose_step_waits_for_one_that_is_held(bench: Bench) -> None:
    first = Step(vms=("v5",), sources=("h1",), target="h2", groups=(), repairs=())
    second = Step(vms=("v1",), sources=("h1",), target="h2", groups=("g1",), repairs=("g1",), after=(0,))
    bench.plan = Plan(cluster=CLUSTER, strategy="by hand", steps=(first, second))
    bench.planned()
    bench.held()
    text = bench.ask("why-not web1")
    assert f"plan {bench.plan.id} has step 2 for it: web1 from alpha to beta, after step 1\n" in text
    assert "step 1, which it waits for, was held back once at" in text
    assert "(window): only at night" in text


def test_why_a_vm_is_not_moved_that_cannot_be(bench: Bench) -> None:
    bench.planned()
    found = bench.document("why-not v3", "WhyNot")
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
    assert " to beta: refused: a filter says no" in bench.ask("why-not web1")
    bench.store.accept(bench.prepare(correlation_id="again").id)
    assert "its migration to beta is under way (accepted)" in bench.ask("why-not web1")


def test_totals_and_a_line_a_day(bench: Bench) -> None:
    bench.planned()
    bench.done()
    for hours, hard in ((50, 4), (26, 1)):
        bench.sampled(hours, hard, soft=1)
    bench.judged(27, lost=7)
    bench.sampled(0, 2)
    bench.sampled(0, 3, cluster="other")
    head, counts, rules, reservation, titles, _, *days = bench.ask("history").splitlines()
    assert head.startswith("all clusters, ")
    assert counts == "  1 plan, 1 migration done, 0 failed"
    assert rules == "  violations: at most 5 hard and 1 soft at once"  # of both clusters, in one hour
    assert reservation == "  HA reservation: not satisfied on 1 day; at most 7 VMs cannot restart"
    assert titles.split() == ["day", "plans", "migrations", "failed", "hard", "soft", "cannot", "restart"]
    assert (len(days), days[-1].split()[1:6]) == (8, ["1", "1", "0", "5", "0"])
    assert days[0].split()[4:] == ["-", "-", "-"]
    answer = bench.document("history", "HistoryDocument")
    assert (answer["kind"], answer["cluster"], answer["totals"]["hard"]) == ("history", None, 5)
    assert sum(day["activity"]["migrations"] for day in answer["days"]) == answer["totals"]["migrations"] == 1
    assert "at most 3 hard" in bench.ask("history --cluster 'name of other'")
    one = bench.document("history --cluster other", "HistoryDocument")
    assert one["cluster"]["name"] == "name of other"


def test_of_a_cluster_in_which_no_enforcer_led_a_trend_claims_nothing(bench: Bench) -> None:
    bench.planned()
    drawn = bench.ask("history --trend --since 30s").splitlines()
    assert drawn[1:3] == [f"cluster {CLUSTER}:", "  hard violations    not known"]


def points_of(answer: Any, name: str) -> list[Any]:
    (found,) = (one for one in answer["clusters"] if one["cluster"]["id"] == name)
    return [point["activity"] for point in found["points"]]


@pytest.mark.parametrize(("since", "hours"), [("1d", 1), ("3d", 2), ("30d", 24), ("390d", 216)])
def test_a_trend_has_points_without_gaps_that_fit_a_terminal(bench: Bench, since: str, hours: int) -> None:
    bench.sampled(2 * hours, 4)
    bench.sampled(0, 1)
    bench.judged(0, lost=3)
    answer = bench.document(f"history --trend --since {since}", "TrendDocument")
    assert answer["point_hours"] == hours
    points = points_of(answer, CLUSTER)
    assert len(points) <= MOST_POINTS
    assert [point["hard"] for point in points[-3:]] == [4, None, 1]
    assert (points[-1]["ha_failures_not_survived"], points[-1]["vms_cannot_restart"]) == (1, 3)
    lines = bench.ask(f"history --trend --since {since}").splitlines()
    assert max(map(len, lines)) <= 80
    (hard,) = (line for line in lines if line.startswith("  hard violations"))
    assert hard.endswith("█ ▃  max 4")


def test_a_trend_is_of_each_cluster_or_of_one(bench: Bench) -> None:
    bench.sampled(0, 1)
    bench.sampled(0, 9, cluster="other")
    both = bench.document("history --trend", "TrendDocument")
    assert [points_of(both, name)[-1]["hard"] for name in (CLUSTER, "other")] == [1, 9]
    assert len(bench.document("history --trend --cluster other", "TrendDocument")["clusters"]) == 1


def test_plans_that_others_took_the_place_of_are_marked_and_folded(bench: Bench) -> None:
    first = "1. web1 from alpha to beta: repairs affinity group web"
    ids = [bench.planned_again(number) for number in range(6)]
    bench.prepare(plan=ids[2])
    lines = bench.lines("history --plans")
    folded = f"cluster {CLUSTER}: 2 plans since superseded by plan {ids[2]}, nothing was migrated"
    assert any(line.startswith(folded) for line in lines)
    assert any(line.startswith(f"plan {ids[2]}") for line in lines)
    assert any("2 plans since" in line and f"superseded by plan {ids[5]}" in line for line in lines)
    assert [line for line in lines if line.startswith("1. ")] == [first] * 2
    shown = bench.lines("history --plans --all")
    assert [line for line in shown if line.startswith("superseded")] == [
        f"superseded by plan {ids[place]}" for place in (1, 2, 4, 5)
    ]
    assert shown.count(first) == len(ids)


def test_a_plan_with_another_cluster_in_between_is_not_superseded_by_it(bench: Bench) -> None:
    bench.planned()
    bench.planned("of-c2", "c2")
    text = bench.ask("history --plans")
    assert "superseded" not in text
    assert text.count("1. web1 from alpha") == 2
