"""What happens is reported when it begins and when it ends, and not over and over between."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovirt_enforcer.notifications.kinds import ABOUT, NoticeKind
from ovirt_enforcer.notifications.notice import Notice, Receipt
from ovirt_enforcer.notifications.notifications import Notifications
from ovirt_enforcer.service.metrics import EnforcerMetrics
from ovirt_enforcer.service.news import News
from ovirt_enforcer.service.recording import Recorder
from ovirt_placement.inventory import NoSnapshot
from ovirt_placement.rules.violations import find_violations
from ovirt_placement.store.history import HistoryStore
from ovirt_placement.store.intents import Store
from tests.builders import CLUSTER, SOFT_TOGETHER, TOGETHER, group, host, rule, snapshot, vm
from tests.stored import prepared


class Reported(Notifications):
    """Keeps what is reported."""

    def __init__(self) -> None:
        super().__init__()
        self.notices: list[Notice] = []

    def send(self, notice: Notice) -> Receipt:
        # Every sentence can be made of what is known.
        assert self.sentence(notice.kind, notice.facts)
        assert ABOUT[notice.kind].facts <= notice.facts.keys() | {"engine"}
        self.notices.append(notice)
        return super().send(notice)

    @property
    def kinds(self) -> list[NoticeKind]:
        return [notice.kind for notice in self.notices]


@pytest.fixture
def reported() -> Reported:
    return Reported()


@pytest.fixture
def news(reported: Reported) -> News:
    return News(reported)


def look(news: News, place_of_b: str) -> None:
    state = snapshot(
        host("h1"),
        host("h2"),
        vm("a", "h1"),
        vm("b", place_of_b),
        vm("c", "h2"),
        group("pair", TOGETHER, "a b", name="near"),
        group("wish", SOFT_TOGETHER, "a c"),
    )
    news.violated(state, CLUSTER, find_violations(state, CLUSTER))


def test_a_hard_rule_is_reported_when_it_breaks_and_when_it_is_repaired(
    reported: Reported, news: News
) -> None:
    for place in ("h1", "h2", "h2", "h1", "h1", "h2"):
        look(news, place)
    assert reported.kinds == [NoticeKind.RULE_VIOLATED, NoticeKind.RULE_REPAIRED, NoticeKind.RULE_VIOLATED]
    assert reported.notices[0].facts == {"cluster": CLUSTER, "rule": "affinity group near"}


def test_a_hard_placement_rule_is_reported_by_its_name_and_a_soft_one_is_not(
    reported: Reported, news: News
) -> None:
    rules = (
        rule("few", "at_most_per_host", "a b", most=1),
        rule("wish", "exclusive_hosts", "a", hosts="h1", enforcing=False),
    )
    for place in ("h2", "h1", "h1", "h2"):
        state = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("b", place), *rules)
        news.violated(state, CLUSTER, find_violations(state, CLUSTER))
    assert reported.kinds == [NoticeKind.RULE_VIOLATED, NoticeKind.RULE_REPAIRED]
    assert [notice.facts for notice in reported.notices] == [
        {"cluster": CLUSTER, "rule": "placement rule few"}
    ] * 2


def test_an_engine_that_is_away_is_reported_with_the_second_failure_in_a_row(
    reported: Reported, news: News
) -> None:
    away = NoSnapshot("no answer")
    news.failed(away)
    news.read()
    news.failed(away)
    assert reported.kinds == []
    for _ in range(5):
        news.failed(away)
    news.failed(ValueError("something else"))
    news.read()
    news.read()
    assert reported.kinds == [NoticeKind.ENGINE_AWAY, NoticeKind.ENGINE_BACK]


def test_a_breaker_is_reported_once_until_it_has_let_something_through(
    reported: Reported, news: News
) -> None:
    for left in (900, 800):
        news.held("c1", "blue", [("window", "not now"), ("breaker", f"the next is tried in {left} s")])
    assert reported.kinds == [NoticeKind.BREAKER_OPEN]
    news.began("c1")
    news.held("c1", "blue", [("breaker", "the next is tried in 1800 s")])
    assert reported.kinds == [NoticeKind.BREAKER_OPEN] * 2


def test_the_recorder_reports_leaders_approvals_and_failures(reported: Reported, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    store, history = (part(url, engine="default", patience_seconds=5) for part in (Store, HistoryStore))
    assert isinstance(store, Store)
    assert isinstance(history, HistoryStore)
    recorder = Recorder(history, EnforcerMetrics(), reported, "me")
    recorder.look(snapshot(host("h1", name="red"), vm("a", "h1", name="web")))
    recorder.leading(3)
    recorder.leading(0)
    recorder.waits("p1", CLUSTER)
    intent = prepared(store, vm="a", cluster=CLUSTER, source="h2", target="h1", correlation_id="one")
    recorder.ended(store.fail(intent.id, "no memory"))
    assert reported.kinds == [NoticeKind.LEADER_CHANGED, NoticeKind.PLAN_WAITS, NoticeKind.MIGRATION_FAILED]
    assert reported.notices[0].facts == {"leader": "me", "epoch": "3"}
    failed = reported.notices[2]
    assert (failed.facts["vm"], failed.facts["host"], failed.facts["reason"]) == ("web", "red", "no memory")
    assert (failed.cluster, failed.vm) == (CLUSTER, "a")
    store.close()
    history.close()


def test_rules_that_change_together_are_one_message_that_carries_each(reported: Reported, news: News) -> None:
    names = [f"pair{number}" for number in range(1, 9)]

    def look_at(place: str) -> None:
        state = snapshot(
            host("h1"),
            host("h2"),
            *(vm(f"a{name}", "h1") for name in names),
            *(vm(f"b{name}", place) for name in names),
            *(group(name, TOGETHER, f"a{name} b{name}", name=name) for name in names),
        )
        news.violated(state, CLUSTER, find_violations(state, CLUSTER))

    for place in ("h1", "h2", "h2", "h1"):
        look_at(place)
    assert reported.kinds == [NoticeKind.RULE_VIOLATED, NoticeKind.RULE_REPAIRED]
    for notice in reported.notices:
        rules = [one.facts["rule"] for one in notice.carried]
        assert sorted(rules) == [f"affinity group {name}" for name in names]
        assert {one.kind for one in notice.carried} == {notice.kind}
        assert notice.facts["rule"] == f"each of 8 rules ({', '.join(rules[:5])} and 3 more)"
