"""What `history` shows without being asked for more: totals, days and trends; and what others superseded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from ovirt_placement.answers.plans import plan_record
from ovirt_placement.answers.status.history import MOST_POINTS
from ovirt_placement.planning.plan import Plan
from ovirt_placement.store.enforcer.observations import SampleStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import CLUSTER
from tests.enforcer.cli.test_history import STATE, Bench, without_moments
from tests.placement.cli.documents import defined
from tests.placement.databases import database
from tests.scenarios.stage import START

HOUR = 3600


class DaysBench(Bench):
    """A bench with samples."""

    def __init__(self, folder: Path, api_url: str, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(folder, api_url, capsys)
        self.samples = SampleStore(self.url, engine="default", patience_seconds=5)

    def sampled(self, hours_ago: int, hard: int, soft: int = 0, cluster: str = CLUSTER) -> None:
        self.samples.record_violations(cluster, f"name of {cluster}", hard=hard, soft=soft)
        self.move(hours_ago, cluster)

    def judged(self, hours_ago: int, survived: int, lost: int) -> None:
        self.samples.record_reservation(
            CLUSTER, f"name of {CLUSTER}", failures=1, survived=survived, not_restarted=lost
        )
        self.move(hours_ago, CLUSTER)

    def move(self, hours_ago: int, cluster: str) -> None:
        """The row that was just written becomes older."""
        with database(self.url) as connection:
            connection.exec_driver_sql(
                f"UPDATE samples SET hour = hour - {hours_ago} WHERE cluster = '{cluster}'"
                f" AND hour = (SELECT max(hour) FROM samples WHERE cluster = '{cluster}')"
            )

    def plan_again(self, number: int) -> str:
        """Another plan of the same steps, a minute younger than the one before."""
        plan_id = f"plan{number:02}"
        document = msgspec.to_builtins(plan_record(self.plan, STATE))
        self.history.record_plan(plan_id, CLUSTER, document, epoch=1)
        with database(self.url) as connection:
            connection.exec_driver_sql(
                f"UPDATE plans SET updated = updated - {(60 - number) * 60} WHERE id = '{plan_id}'"
            )
        return plan_id


@pytest.fixture
def bench(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[DaysBench]:
    server = serve(Engine.from_snapshot(STATE, clock=START))
    made = DaysBench(tmp_path, server.api_url, capsys)
    yield made
    made.samples.close()
    made.close()
    server.close()


def test_totals_and_a_line_a_day(bench: DaysBench) -> None:
    bench.planned()
    bench.done()
    for hours, hard in ((50, 4), (26, 1)):
        bench.sampled(hours, hard, soft=1)
    bench.judged(27, survived=0, lost=7)
    bench.sampled(0, 2)
    bench.sampled(0, 3, cluster="other")
    text = bench.ask("history")
    head, counts, rules, reservation, titles, _, *days = text.splitlines()
    assert head.startswith("all clusters, ")
    assert counts == "  1 plan, 1 migration done, 0 failed"
    assert rules == "  violations: at most 5 hard and 1 soft at once"  # of both clusters, in one hour
    assert reservation == "  HA reservation: not satisfied on 1 day; at most 7 VMs cannot restart"
    assert titles.split() == ["day", "plans", "migrations", "failed", "hard", "soft", "cannot", "restart"]
    assert len(days) == 8
    assert days[-1].split()[1:6] == ["1", "1", "0", "5", "0"]
    assert days[0].split()[4:] == ["-", "-", "-"]
    answer = defined(bench.ask("history", "--json"), "HistoryDocument")
    assert (answer["kind"], answer["cluster"], answer["totals"]["hard"]) == ("history", None, 5)
    assert sum(day["activity"]["migrations"] for day in answer["days"]) == answer["totals"]["migrations"] == 1


def test_one_cluster_by_its_name_and_a_mistyped_one_is_an_error(bench: DaysBench) -> None:
    bench.sampled(0, 2)
    bench.sampled(0, 3, cluster="other")
    assert "at most 3 hard" in bench.ask("history", "--cluster", "name of other")
    assert bench.data("history", "--cluster", "other")["cluster"]["name"] == "name of other"
    wrong = bench.complaint("history", "--cluster", "clustr1")
    assert 'no cluster "clustr1"; did you mean "cluster1"' in wrong


def test_a_cluster_that_nothing_is_known_of_is_no_mistake(bench: DaysBench) -> None:
    bench.leases.take_lease("me", 600.0)  # makes the store
    text = bench.ask("history", "--cluster", CLUSTER)
    assert text.startswith(f"cluster {CLUSTER}, ")
    assert "violations: not known" in text
    assert "Nothing is known" in bench.ask("history", "--trend", "--cluster", CLUSTER)


def test_before_any_enforcer_led_nothing_is_claimed(bench: DaysBench) -> None:
    bench.planned()  # makes the store
    text = bench.ask("history")
    assert "violations: not known" in text
    assert "HA reservation: not known" in text
    drawn = bench.ask("history", "--trend", "--since", "30s").splitlines()
    assert drawn[1:3] == [f"cluster {CLUSTER}:", "  hard violations    not known"]


def points_of(answer: Any, name: str) -> list[Any]:
    (found,) = (one for one in answer["clusters"] if one["cluster"]["id"] == name)
    return [point["activity"] for point in found["points"]]


@pytest.mark.parametrize(("since", "hours"), [("1d", 1), ("3d", 2), ("30d", 24), ("390d", 216)])
def test_a_trend_has_points_without_gaps_that_fit_a_terminal(
    bench: DaysBench, since: str, hours: int
) -> None:
    bench.sampled(2 * hours, 4)
    bench.sampled(0, 1)
    bench.judged(0, survived=0, lost=3)
    answer = defined(bench.ask("history", "--trend", "--since", since, "--json"), "TrendDocument")
    assert answer["point_hours"] == hours
    points = points_of(answer, CLUSTER)
    assert len(points) <= MOST_POINTS
    assert [point["hard"] for point in points[-3:]] == [4, None, 1]
    assert (points[-1]["ha_failures_not_survived"], points[-1]["vms_cannot_restart"]) == (1, 3)
    text = bench.ask("history", "--trend", "--since", since)
    assert max(map(len, text.splitlines())) <= 80
    (hard,) = (line for line in text.splitlines() if line.startswith("  hard violations"))
    assert hard.endswith("█ ▃  max 4")


def test_a_trend_is_of_each_cluster_or_of_one(bench: DaysBench) -> None:
    bench.sampled(0, 1)
    bench.sampled(0, 9, cluster="other")
    both = bench.data("history", "--trend")
    assert [points_of(both, name)[-1]["hard"] for name in (CLUSTER, "other")] == [1, 9]
    assert len(bench.data("history", "--trend", "--cluster", "other")["clusters"]) == 1


def test_plans_that_others_took_the_place_of_are_marked_and_folded(bench: DaysBench) -> None:
    ids = [bench.plan_again(number) for number in range(6)]
    bench.prepare(plan=ids[2])
    lines = without_moments(bench.ask("history", "--plans"))
    folded = f"cluster {CLUSTER}: 2 plans since superseded by plan {ids[2]}, nothing was migrated"
    assert any(line.startswith(folded) for line in lines)
    assert any(line.startswith(f"plan {ids[2]}") for line in lines)
    assert any("2 plans since" in line and f"superseded by plan {ids[5]}" in line for line in lines)
    assert [line for line in lines if line.startswith("1. ")] == ["1. " + step(bench.plan)] * 2
    shown = without_moments(bench.ask("history", "--plans", "--all"))
    assert [line for line in shown if line.startswith("superseded")] == [
        f"superseded by plan {plan_id}" for plan_id in (ids[1], ids[2], ids[4], ids[5])
    ]
    assert sum(line.startswith("1. ") for line in shown) == len(ids)


def step(plan: Plan) -> str:
    assert len(plan.steps) == 1
    return "web1 from alpha to beta: repairs affinity group web"


@pytest.mark.parametrize(
    ("option", "name", "found"),
    [
        ("--vm", "web1", True),
        ("--vm", "web", False),
        ("--host", "alpha", True),
        ("--host", "h2", True),
        ("--vm", "calm", False),
    ],
)
def test_what_concerns_a_vm_or_a_host(bench: DaysBench, option: str, name: str, found: bool) -> None:
    bench.planned()
    if name == "web":  # of a group alone
        assert 'no VM "web"; did you mean "web' in bench.complaint("history", option, name)
        return
    text = bench.ask("history", option, name)
    assert (bench.plan.id in text, "nothing was decided" in text) == (found, not found)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--vm", "wbe1"], 'no VM "wbe1"; did you mean "web1"'),
        (["--host", "alhpa"], 'no host "alhpa"; did you mean "alpha"'),
        (["clam"], 'no VM or affinity group "clam"; did you mean "calm"'),
        (["--plans", "--cluster", "clam"], 'no cluster "clam"'),
    ],
)
def test_an_unknown_name_is_an_error_with_the_nearest(
    bench: DaysBench, arguments: list[str], error: str
) -> None:
    bench.planned()
    assert error in bench.complaint("history", *arguments)


def test_a_migration_whose_plan_is_forgotten_is_found_by_name(bench: DaysBench) -> None:
    bench.prepare("v5", plan="forgotten")
    assert "migration of v5 to h2" in bench.ask("history", "--vm", "calm")
    assert "migration of v5 to h2" in bench.ask("history", "--host", "beta")
    assert "nothing was decided" in bench.ask("history", "--vm", "other")


def test_a_plan_with_another_cluster_in_between_is_not_superseded_by_it(bench: DaysBench) -> None:
    bench.planned()
    other = replace(bench.plan, cluster="c2")
    document = msgspec.to_builtins(plan_record(other, STATE))
    bench.history.record_plan("of-c2", "c2", document, epoch=1)
    text = bench.ask("history", "--plans")
    assert "superseded" not in text
    assert text.count("1. web1 from alpha") == 2
