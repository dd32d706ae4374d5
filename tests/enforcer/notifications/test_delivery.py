"""Too many notices at once: what is critical comes at once, the rest later, together and counted."""

from collections import Counter
from typing import Any

import pytest

from ovirt_enforcer.log import LIMITED, Notice, NoticeKind, Severity
from ovirt_enforcer.notifications import Delivery, Notifications, RateLimit, Receipt, Webhook
from ovirt_enforcer.settings import EnforcerSettings, WebhookSettings
from ovirt_placement.config import Config
from ovirt_service.errors import UserError
from tests.enforcer.notifications.conftest import Receiver
from tests.kit.notices import KeepingChannel
from tests.proxy.running import eventually


class Bench:
    """A channel with two notices an hour, by a clock that a test sets."""

    def __init__(self, channel: KeepingChannel | Webhook, most_waiting: int = 100) -> None:
        self.now = 0.0
        self.counts: Counter[str] = Counter()
        self.receipts: list[Receipt] = []
        limit = RateLimit(2, lambda: self.now)
        delivery = Delivery(channel, NoticeKind, self._count, limit=limit, most_waiting=most_waiting)
        self._notifications = Notifications([delivery], "default")

    def report(self, kind: NoticeKind, name: str = "") -> None:
        facts = {fact: f"{fact} {name}" for fact in kind.facts}
        self.receipts.append(self._notifications.send(Notice(kind, facts)))

    def _count(self, channel: str, result: str) -> None:
        self.counts[result] += 1


def test_the_stock_fills_up_with_the_time_and_no_further() -> None:
    now = 0.0
    limit = RateLimit(60, lambda: now)
    assert [limit.spend_token() for _ in range(61)] == [True] * 60 + [False]
    assert limit.seconds_until_next() == pytest.approx(60.0)
    now = 59.0
    assert not limit.spend_token()
    now = 60.5
    assert limit.spend_token()
    assert not limit.spend_token()
    now = 1e6
    assert [limit.spend_token() for _ in range(61)] == [True] * 60 + [False]


def test_beyond_the_limit_they_wait_and_come_as_one_that_counts_them() -> None:
    channel = KeepingChannel()
    bench = Bench(channel)
    for number in range(5):
        bench.report(NoticeKind.MIGRATION_FAILED, str(number))
    bench.report(NoticeKind.RULE_VIOLATED)
    bench.report(NoticeKind.HA_ALERT)
    eventually(lambda: bench.counts["held_back"] == 4 and bench.counts["delivered"] == 3)
    assert [notice.kind for notice in channel.heard] == [
        NoticeKind.MIGRATION_FAILED,
        NoticeKind.MIGRATION_FAILED,
        NoticeKind.HA_ALERT,
    ]
    bench.now = 1800.0
    bench.report(NoticeKind.ENGINE_AWAY)  # wakes it; what waited goes first
    eventually(lambda: bench.counts["delivered"] == 8)
    digest, away = channel.heard[3:]
    assert (digest.kind, away.kind) == (NoticeKind.HELD_BACK, NoticeKind.ENGINE_AWAY)
    assert (digest.facts["count"], digest.facts["kinds"]) == ("4", "3 migration_failed, 1 rule_violated")
    assert [one.facts["vm"] for one in digest.carried[:3]] == ["vm 2", "vm 3", "vm 4"]
    assert all(receipt.delivered for receipt in bench.receipts)


def test_what_waits_is_bounded_and_what_is_dropped_is_counted() -> None:
    channel = KeepingChannel()
    bench = Bench(channel, most_waiting=3)
    for number in range(2 + 3):
        bench.report(NoticeKind.LEADER_CHANGED, str(number))
        eventually(lambda: bench.counts["held_back"] + bench.counts["delivered"] == len(bench.receipts))
    bench.report(NoticeKind.LEADER_CHANGED, "z")
    eventually(lambda: bench.counts["dropped"] == 1)
    bench.now = 1800.0
    bench.report(NoticeKind.ENGINE_BACK)
    eventually(lambda: bench.counts["delivered"] == 2 + 3 + 1)
    assert [one.facts["leader"] for one in channel.heard[2].carried] == ["leader 3", "leader 4", "leader z"]


def test_nothing_critical_is_ever_held_back() -> None:
    assert all(kind.severity not in (Severity.ERROR, Severity.ALERT) for kind in LIMITED)
    assert not [kind for kind in LIMITED if kind.value.startswith(("ha_", "engine_", "breaker"))]
    channel = KeepingChannel()
    bench = Bench(channel, most_waiting=10 * len(NoticeKind))
    critical = [kind for kind in NoticeKind if kind not in LIMITED]
    for _ in range(10):
        for kind in critical:
            bench.report(kind)
    eventually(lambda: bench.counts["delivered"] == 10 * len(critical))
    assert bench.counts.keys() == {"delivered"}


def test_a_webhook_gets_every_alert_of_what_was_held_back_in_one_post(receiver: Receiver) -> None:
    channel = Webhook(WebhookSettings(url=receiver.url), lambda kind, facts: kind.value)
    bench = Bench(channel)
    rules = tuple(
        Notice(NoticeKind.RULE_VIOLATED, {"cluster": "blue", "rule": f"rule {at}"}) for at in range(3)
    )
    for _ in range(2):
        bench.report(NoticeKind.LEADER_CHANGED)
    bench.report(NoticeKind.MIGRATION_FAILED, "7")
    facts = {"cluster": "blue", "rule": "each of 3 rules"}
    bench._notifications.send(Notice(NoticeKind.RULE_VIOLATED, facts, carried=rules))
    eventually(lambda: bench.counts["held_back"] == 2)
    bench.now = 1800.0
    bench.report(NoticeKind.ENGINE_BACK)
    eventually(lambda: bench.counts["delivered"] == 5)
    alerts = receiver.received[2].alerts
    assert [alert["labels"]["alertname"] for alert in alerts] == [
        "NotificationsHeldBack",
        "MigrationFailed",
        *["RuleViolated"] * 3,
    ]
    assert [alert["labels"]["rule"] for alert in alerts[2:]] == ["rule 0", "rule 1", "rule 2"]


def settings(**notifications: Any) -> EnforcerSettings:
    config = Config({"enforcer": {"notifications": notifications}}, "the file")
    return config.section("enforcer", EnforcerSettings)


def test_a_sentence_is_ones_own() -> None:
    own = settings(sentences={"plan_waits": "$engine: look at $plan, it costs $$"}).notifications
    assert own.sentence(NoticeKind.PLAN_WAITS, {"engine": "e", "plan": "p1"}) == "e: look at p1, it costs $"
    assert own.sentence(NoticeKind.ENGINE_BACK, {"engine": "e"}) == "engine e answers again"


@pytest.mark.parametrize("kind", NoticeKind)
def test_every_sentence_can_be_said(kind: NoticeKind) -> None:
    facts = dict.fromkeys(kind.facts, "something")
    assert "$" not in settings().notifications.sentence(kind, {"engine": "e", **facts})


@pytest.mark.parametrize(
    ("notifications", "complaint"),
    [
        ({"sentences": {"plan_waits": "see $plane"}}, r"\$plane: it has \$cluster, \$engine, \$plan"),
        ({"sentences": {"plan_waits": "costs $ 5"}}, r"write \$\$ for a dollar sign"),
        ({"webhook": {"kinds": ["ha_alarm"]}}, "ha_alarm"),
        ({"webhook": {"url": "ftp://x"}}, "url"),
        ({"engine": {"kind": []}}, "kind"),
    ],
)
def test_what_is_wrong_is_named(notifications: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        settings(**notifications)
