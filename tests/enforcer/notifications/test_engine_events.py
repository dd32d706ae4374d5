"""Each notice is one event of the engine, whatever numbers others use and whenever the answer gets lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from ovirt_enforcer.notifications import notifications
from ovirt_enforcer.notifications.delivery import NotDelivered, Notice, Rejected
from ovirt_enforcer.notifications.kinds import NoticeKind, NotificationSettings
from ovirt_enforcer.notifications.notifications import EngineEvents
from ovirt_placement.config import EngineSettings
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import Server
from tests.builders import cluster, host, snapshot
from tests.configuration import write_password
from tests.scenarios.stage import START

NOTICE = Notice(
    NoticeKind.RULE_VIOLATED, {"engine": "e", "cluster": "blue", "rule": "affinity group near"}, "c1"
)


@pytest.fixture
def engine() -> Engine:
    state = snapshot(cluster("c1", name="blue"), host("h1", cluster="c1"))
    return Engine.from_snapshot(state, clock=START, settings=PROMPT)


@pytest.fixture
def channel(server: Server, tmp_path: Path) -> EngineEvents:
    settings = EngineSettings(
        url=server.api_url, username="admin@internal", password_file=write_password(tmp_path)
    )
    return EngineEvents(settings, NotificationSettings().sentence)


def ours(engine: Engine) -> list[str]:
    events = [event for event in engine.queries.events() if event.origin == "ovirt-placement"]
    return [event.description or "" for event in sorted(events, key=lambda event: event.id)]


def test_it_is_shown_with_its_cluster_and_severity(engine: Engine, channel: EngineEvents) -> None:
    channel.send(NOTICE)
    (event,) = (event for event in engine.queries.events() if event.origin == "ovirt-placement")
    assert event.description == "affinity group near in cluster blue is violated"
    assert event.cluster is not None
    assert (event.severity, event.cluster.id) == ("warning", "c1")


def test_an_answer_that_is_lost_makes_no_second_event(
    engine: Engine, channel: EngineEvents, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = notifications.add_event

    def lost(*arguments: object, **named: object) -> bool:
        add(*arguments, **named)  # type: ignore[arg-type]
        raise notifications.EngineAway("no answer", request_sent=True)

    monkeypatch.setattr(notifications, "add_event", lost)
    with pytest.raises(NotDelivered, match="no answer"):
        channel.send(NOTICE)
    monkeypatch.setattr(notifications, "add_event", add)
    channel.send(NOTICE)
    assert len(ours(engine)) == 1


def test_what_the_engine_refuses_is_not_tried_again(server: Server, tmp_path: Path) -> None:
    """Only an administrator may add events."""
    settings = EngineSettings(
        url=server.api_url, username="user@internal", password_file=write_password(tmp_path)
    )
    with pytest.raises(Rejected):
        EngineEvents(settings, NotificationSettings().sentence).send(NOTICE)
