"""Alerts reach a receiver in Alertmanager's form, even one that is busy at first, and nobody waits for it."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests
import responses

from ovirt_enforcer.notifications.courier import Courier, NotDelivered, Rejected
from ovirt_enforcer.notifications.kinds import ABOUT, Kind
from ovirt_enforcer.notifications.notice import Notice, Receipt
from ovirt_enforcer.notifications.notifications import Notifications
from ovirt_enforcer.notifications.settings import NotificationSettings, WebhookSettings
from ovirt_enforcer.notifications.webhook import Webhook
from ovirt_service.errors import UserError
from tests.proxy.running import eventually

URL = "http://alerts.example/api/v2/alerts"
SETTINGS = NotificationSettings()
#: Something for whatever a sentence may speak of.
FACTS = {name: f"the {name}" for about in ABOUT.values() for name in about.facts}


def webhook(url: str = URL, **fields: Any) -> Webhook:
    return Webhook(WebhookSettings(url=url, **fields), SETTINGS.sentence)


def notice(kind: Kind, at: float = 1_790_000_000.0) -> Notice:
    return Notice(kind, {**FACTS, "engine": "default"}, at=at)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


@responses.activate
def test_an_alert_begins_and_the_same_one_ends() -> None:
    responses.post(URL)
    channel = webhook()
    channel.send(notice(Kind.HA_ALERT))
    channel.send(notice(Kind.HA_ALL_CLEAR, at=1_790_000_600.0))
    first, second = (json.loads(call.request.body or "") for call in responses.calls)
    begun = {alert["labels"]["alertname"]: alert for alert in first}["HaReservation"]
    assert begun["labels"] == {
        "alertname": "HaReservation",
        "severity": "alert",
        "engine": "default",
        "service": "ovirt-enforcer",
        "cluster": "the cluster",
    }
    assert begun["annotations"]["summary"] == (
        "cluster the cluster does not survive what its HA reservation is to survive: the losses"
    )
    assert begun["annotations"]["missing_mb"] == "the missing_mb"
    assert moment(begun["startsAt"]) == datetime.fromtimestamp(1_790_000_000, UTC)
    # Alertmanager ends what has no end after minutes; this is told again after a day.
    assert (moment(begun["endsAt"]) - moment(begun["startsAt"])).total_seconds() == 25 * 3600
    ended = {alert["labels"]["alertname"]: alert for alert in second}["HaReservation"]
    assert ended["labels"] == begun["labels"]
    assert moment(ended["endsAt"]) == datetime.fromtimestamp(1_790_000_600, UTC)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_a_form(kind: Kind) -> None:
    with responses.RequestsMock() as receiver:
        receiver.post(URL)
        webhook().send(notice(kind))
        (call,) = receiver.calls
        alerts = json.loads(call.request.body or "")
    assert alerts
    for alert in alerts:
        assert set(alert) == {"labels", "annotations", "startsAt", "endsAt"}
        texts = {**alert["labels"], **alert["annotations"]}
        assert all(isinstance(text, str) and text for text in texts.values())
        assert moment(alert["startsAt"]) <= moment(alert["endsAt"])


@responses.activate
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"status": 503}, NotDelivered),
        ({"status": 429}, NotDelivered),
        ({"body": requests.ConnectionError("refused")}, NotDelivered),
        ({"body": requests.Timeout("too long")}, NotDelivered),
        ({"status": 400, "body": "bad alert"}, Rejected),
        ({"status": 302, "headers": {"Location": "http://elsewhere.example"}}, Rejected),
    ],
)
def test_who_may_take_it_later_is_told_from_who_will_not(
    answer: dict[str, Any], error: type[Exception]
) -> None:
    responses.post(URL, **answer)
    with pytest.raises(error, match=r"alerts\.example"):
        webhook().send(notice(Kind.ENGINE_AWAY))
    assert len(responses.calls) == 1


@responses.activate
def test_a_token_is_sent(tmp_path: Path) -> None:
    responses.post(URL)
    file = tmp_path / "token"
    file.write_text("secret\n")
    webhook(token_file=file).send(notice(Kind.ENGINE_AWAY))
    assert responses.calls[0].request.headers["Authorization"] == "Bearer secret"


def test_a_token_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"token_file: .*none: No such file"):
        webhook(token_file=tmp_path / "none")


class Receiver(HTTPServer):
    """A receiver that is busy at first."""

    def __init__(self, failures: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.failures = failures
        self.received: list[dict[str, str]] = []


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        found = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.server.failures:
            self.server.failures -= 1
            self.send_response(503)
        else:
            self.server.received.extend(alert["labels"] for alert in found)
            self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver(failures=2) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_receiver_that_is_busy_gets_all_in_order_once_it_is_not(receiver: Receiver) -> None:
    counted = Counter[tuple[str, str]]()
    channel = webhook(f"http://127.0.0.1:{receiver.server_port}/api/v2/alerts")
    courier = Courier(channel, Kind, lambda name, result: counted.update([(name, result)]))
    told = Notifications([courier], "default")
    told.tell(Kind.RULE_BROKEN, cluster="blue", rule="affinity group near")
    told.tell(Kind.LEADER_CHANGED, leader="me", epoch="7")
    eventually(lambda: counted["webhook", "delivered"] == 2)
    assert [labels["alertname"] for labels in receiver.received] == ["RuleBroken", "LeaderChanged"]
    assert receiver.received[0]["rule"] == "affinity group near"


class Stuck:
    """A channel that hangs until it is let go, and then refuses."""

    name = "stuck"

    def __init__(self) -> None:
        self.go = threading.Event()

    def send(self, notice: Notice) -> None:
        self.go.wait(60)
        raise Rejected("no")


def test_a_channel_that_hangs_holds_nobody_up_and_keeps_no_more_than_so_many() -> None:
    counted = Counter[str]()
    channel = Stuck()
    courier = Courier(channel, Kind, lambda name, result: counted.update([result]), most_waiting=5)
    told = Notifications([courier], "default")
    receipts = [told.send(notice(Kind.ENGINE_BACK)) for _ in range(50)]
    assert counted["dropped"] in (44, 45)  # one may be on its way
    assert [receipt.over for receipt in receipts].count(False) in (5, 6)
    channel.go.set()
    eventually(lambda: counted["failed"] + counted["dropped"] == 50)
    assert not any(receipt.delivered for receipt in receipts)


def test_what_no_channel_wants_is_delivered() -> None:
    receipt: Receipt = Notifications().send(notice(Kind.HA_ALERT))
    assert receipt.delivered


def test_a_channel_gets_the_kinds_that_it_is_to_get(receiver: Receiver) -> None:
    receiver.failures = 0
    channel = webhook(f"http://127.0.0.1:{receiver.server_port}/")
    told = Notifications([Courier(channel, [Kind.HA_ALERT])], "default")
    assert told.send(notice(Kind.HA_ALL_CLEAR)).delivered
    alert = told.send(notice(Kind.HA_ALERT))
    eventually(lambda: alert.delivered)
    assert "HaReservation" in {labels["alertname"] for labels in receiver.received}
