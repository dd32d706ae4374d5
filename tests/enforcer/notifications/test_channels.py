"""Alerts reach a receiver in Alertmanager's form, even one that is busy at first, and nobody waits for it."""

import itertools
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trustme

from ovirt_enforcer import notifications
from ovirt_enforcer.log import Notice, NoticeKind
from ovirt_enforcer.notifications import Delivery, EngineEvents, NotDelivered, Notifications, Receipt, Webhook
from ovirt_enforcer.settings import NotificationSettings, WebhookSettings
from ovirt_placement.config import EngineSettings
from ovirt_service.errors import UserError
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Event
from ovirt_simulator.http.server import Server
from tests.builders import cluster, host, snapshot
from tests.configuration import write_password
from tests.enforcer.notifications.conftest import TAKEN, Receiver, dripping, receiving
from tests.proxy.running import eventually

SETTINGS = NotificationSettings()
#: Something for whatever a sentence may speak of.
FACTS = {name: f"the {name}" for kind in NoticeKind for name in kind.facts}


def webhook(url: str, **fields: Any) -> Webhook:
    return Webhook(WebhookSettings(url=url, **fields), SETTINGS.sentence)


def notice(kind: NoticeKind, at: float = 1_790_000_000.0) -> Notice:
    return Notice(kind, {**FACTS, "engine": "default"}, at=at)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_an_alert_begins_and_the_same_one_ends(receiver: Receiver) -> None:
    channel = webhook(receiver.url)
    channel.send(notice(NoticeKind.HA_ALERT))
    channel.send(notice(NoticeKind.HA_ALL_CLEAR, at=1_790_000_600.0))
    first, second = (received.alerts for received in receiver.received)
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
    # Alertmanager ends what has no end after minutes; this is reported again after a day.
    assert (moment(begun["endsAt"]) - moment(begun["startsAt"])).total_seconds() == 25 * 3600
    summaries = [alert["annotations"]["summary"] for alert in first]
    assert len(set(summaries)) == len(summaries) == 2, "what ends and what begins are two things"
    ended = {alert["labels"]["alertname"]: alert for alert in second}["HaReservation"]
    assert ended["labels"] == begun["labels"]
    assert moment(ended["endsAt"]) == datetime.fromtimestamp(1_790_000_600, UTC)


@pytest.mark.parametrize("kind", NoticeKind)
def test_every_kind_has_a_form(receiver: Receiver, kind: NoticeKind) -> None:
    webhook(receiver.url).send(notice(kind))
    (received,) = receiver.received
    assert received.alerts
    for alert in received.alerts:
        assert set(alert) == {"labels", "annotations", "startsAt", "endsAt"}
        texts = {**alert["labels"], **alert["annotations"]}
        assert all(isinstance(text, str) and text for text in texts.values())
        assert moment(alert["startsAt"]) <= moment(alert["endsAt"])


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", NotDelivered),
        (b"HTTP/1.1 429 Slowly\r\nContent-Length: 0\r\n\r\n", NotDelivered),
        (b"HTTP/1.1 500 No\r\n\r\n", NotDelivered),
        (b"", NotDelivered),
        (b"not HTTP at all", NotDelivered),
        (b"HTTP/1.1 400 No\r\nContent-Length: 9\r\n\r\nbad alert", UserError),
        (b"HTTP/1.1 404 No\r\n\r\nCannot POST /hooks/geheim", UserError),
        (b"HTTP/1.1 302 Gone\r\nLocation: http://elsewhere.example\r\n\r\n", UserError),
    ],
)
def test_who_may_take_it_later_is_distinguished_from_who_will_not_and_no_secret_is_repeated(
    receiver: Receiver, answer: bytes, error: type[Exception]
) -> None:
    receiver.answers = itertools.repeat([answer])
    url = f"http://me:geheim@127.0.0.1:{receiver.port}/hooks/geheim?token=geheim"
    with pytest.raises(error, match=rf"http://127\.0\.0\.1:{receiver.port}") as caught:
        webhook(url).send(notice(NoticeKind.ENGINE_AWAY))
    assert "geheim" not in str(caught.value)
    assert len(receiver.received) == 1


def test_nobody_listens_is_for_later() -> None:
    with receiving() as gone:
        url = gone.url
    with pytest.raises(NotDelivered):
        webhook(url).send(notice(NoticeKind.ENGINE_AWAY))


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
DELIVERED = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
REFUSED = b"HTTP/1.1 400 No\r\nConnection: close\r\n\r\n"


#: How an answer without end begins, what comes again and again, and what is made of it.
ENDLESS = {
    "body": (DELIVERED, b"x", None),
    "body of a refusal": (REFUSED, b"x", UserError),
    "a header": (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"x", None),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X-Endless: " + b"x" * 1000 + b"\r\n", None),
    "100 Continue": (b"", CONTINUE, NotDelivered),
    "silence": (b"", b"", NotDelivered),
}


@pytest.mark.parametrize("what", sorted({*ENDLESS} - {"a header", "silence"}))
def test_an_answer_without_end_is_not_taken_in(receiver: Receiver, what: str) -> None:
    start, again, error = ENDLESS[what]
    receiver.answers = itertools.repeat(itertools.chain([start], itertools.repeat(again * 100)))
    channel = webhook(receiver.url, timeout_seconds=60)
    with pytest.raises(error) if error else nullcontext():
        channel.send(notice(NoticeKind.ENGINE_AWAY))
    # What stands in the sockets' buffers was sent as well.
    eventually(lambda: receiver.hung_up == 1)
    assert receiver.sent < 2**24


@pytest.mark.system
@pytest.mark.parametrize("what", sorted({*ENDLESS} - {"headers"}))
def test_an_answer_that_comes_in_drops_is_not_waited_for(receiver: Receiver, what: str) -> None:
    """Each drop comes in time, and all together never do."""
    start, drop, error = ENDLESS[what]
    receiver.answers = itertools.repeat(itertools.chain([start], dripping(receiver, drop)))
    channel = webhook(receiver.url, timeout_seconds=0.5)
    with pytest.raises(error) if error else nullcontext():
        channel.send(notice(NoticeKind.ENGINE_AWAY))
    assert not receiver.over.is_set()


def test_a_token_is_sent(receiver: Receiver, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    webhook(receiver.url, token_file=file).send(notice(NoticeKind.ENGINE_AWAY))
    assert "Authorization: Bearer secret" in receiver.received[0].head.splitlines()


def test_a_token_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"token_file: .*none: No such file"):
        webhook("http://127.0.0.1:1", token_file=tmp_path / "none")


@pytest.mark.parametrize(
    "content", [b"", b"secret\nsecret", b"# a token\r\nsecret", b"\xff\xfe", b"se\0cret"]
)
def test_what_is_no_token_is_reported_and_not_repeated(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    with pytest.raises(UserError, match=r"token_file: .*/token: holds no token") as caught:
        webhook("http://127.0.0.1:1", token_file=tmp_path / "token")
    assert "secret" not in str(caught.value)


def test_the_receivers_certificate_is_checked(tmp_path: Path) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with receiving(authority.issue_cert("127.0.0.1")) as receiver:
        webhook(receiver.url, ca_file=tmp_path / "ca.pem").send(notice(NoticeKind.ENGINE_AWAY))
        with pytest.raises(NotDelivered, match="certificate"):
            webhook(receiver.url).send(notice(NoticeKind.ENGINE_AWAY))
    assert len(receiver.received) == 1


@pytest.mark.system
def test_a_receiver_that_is_busy_gets_all_in_order_once_it_is_not(receiver: Receiver) -> None:
    busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
    receiver.answers = itertools.chain([[busy], [busy]], itertools.repeat([TAKEN]))
    counted = Counter[tuple[str, str]]()
    delivery = Delivery(webhook(receiver.url), NoticeKind, lambda *which: counted.update([which]))
    reported = Notifications([delivery], "default")
    reported.report(NoticeKind.RULE_VIOLATED, cluster="blue", rule="affinity group near")
    reported.report(NoticeKind.LEADER_CHANGED, leader="me", epoch="7")
    eventually(lambda: counted["webhook", "delivered"] == 2)
    labels = [alert["labels"] for received in receiver.received[2:] for alert in received.alerts]
    assert [one["alertname"] for one in labels] == ["RuleViolated", "LeaderChanged"]
    assert labels[0]["rule"] == "affinity group near"


class Stuck:
    """A channel that hangs until it is let go, and then refuses."""

    name = "stuck"

    def __init__(self) -> None:
        self.go = threading.Event()

    def send(self, notice: Notice) -> None:
        self.go.wait(60)
        raise UserError("no")


def test_a_channel_that_hangs_delays_nobody_and_queues_no_more_than_allowed() -> None:
    counted = Counter[str]()
    channel = Stuck()
    delivery = Delivery(channel, NoticeKind, lambda name, result: counted.update([result]), most_waiting=5)
    reported = Notifications([delivery], "default")
    receipts = [reported.send(notice(NoticeKind.ENGINE_BACK)) for _ in range(50)]
    assert counted["dropped"] in (44, 45)  # one may be on its way
    assert [receipt.over for receipt in receipts].count(False) in (5, 6)
    channel.go.set()
    eventually(lambda: counted["failed"] + counted["dropped"] == 50)
    assert not any(receipt.delivered for receipt in receipts)


def test_what_no_channel_wants_is_delivered() -> None:
    receipt: Receipt = Notifications().send(notice(NoticeKind.HA_ALERT))
    assert receipt.delivered


def test_a_channel_gets_the_kinds_that_it_is_to_get(receiver: Receiver) -> None:
    reported = Notifications([Delivery(webhook(receiver.url), [NoticeKind.HA_ALERT])], "default")
    assert reported.send(notice(NoticeKind.HA_ALL_CLEAR)).delivered
    alert = reported.send(notice(NoticeKind.HA_ALERT))
    eventually(lambda: alert.delivered)
    alerts = [alert for received in receiver.received for alert in received.alerts]
    assert "HaReservation" in {alert["labels"]["alertname"] for alert in alerts}


NOTICE = Notice(
    NoticeKind.RULE_VIOLATED, {"engine": "e", "cluster": "blue", "rule": "affinity group near"}, "c1"
)


STATE = snapshot(cluster("c1", name="blue"), host("h1", cluster="c1"))
Channel = Callable[[str], EngineEvents]


@pytest.fixture
def channel(server: Server, tmp_path: Path) -> Channel:
    """That of a user."""

    def of(user: str) -> EngineEvents:
        password = write_password(tmp_path)
        settings = EngineSettings(url=server.api_url, username=f"{user}@internal", password_file=password)
        return EngineEvents(settings, SETTINGS.sentence)

    return of


def ours(engine: Engine) -> list[Event]:
    return [event for event in engine.queries.events() if event.origin == "ovirt-placement"]


def test_it_is_shown_with_its_cluster_and_severity(engine: Engine, channel: Channel) -> None:
    channel("admin").send(NOTICE)
    (event,) = ours(engine)
    assert event.description == "affinity group near in cluster blue is violated"
    assert event.cluster is not None
    assert (event.severity, event.cluster.id) == ("warning", "c1")


def test_an_answer_that_is_lost_makes_no_second_event(
    engine: Engine, channel: Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    add, admins = notifications.add_event, channel("admin")

    def lost(*arguments: object, **named: object) -> bool:
        add(*arguments, **named)  # type: ignore[arg-type]
        raise notifications.EngineAway("no answer", request_sent=True)

    monkeypatch.setattr(notifications, "add_event", lost)
    with pytest.raises(NotDelivered, match="no answer"):
        admins.send(NOTICE)
    monkeypatch.setattr(notifications, "add_event", add)
    admins.send(NOTICE)
    assert len(ours(engine)) == 1


def test_what_the_engine_refuses_is_not_tried_again(channel: Channel) -> None:
    """Only an administrator may add events."""
    with pytest.raises(UserError):
        channel("user").send(NOTICE)
