"""Units that the engine has disabled are reported once it cannot be its start, and when they are back."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from ovirt_enforcer.notifications.kinds import NoticeKind
from ovirt_enforcer.notifications.notice import Notice, Receipt
from ovirt_enforcer.notifications.notifications import Notifications
from ovirt_enforcer.service.unit_watch import UnitWatch
from ovirt_placement.model import SchedulingPolicy, Snapshot
from tests.builders import cluster, snapshot


class Kept(Notifications):
    """Keeps what is reported."""

    def __init__(self) -> None:
        super().__init__()
        self.notices: list[tuple[NoticeKind, Mapping[str, str]]] = []

    def send(self, notice: Notice) -> Receipt:
        self.notices.append((notice.kind, notice.facts))
        return super().send(notice)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept() -> Kept:
    return Kept()


def state(*disabled: str) -> Snapshot:
    policy = SchedulingPolicy(disabled=disabled)
    return snapshot(cluster("c1", name="blue", scheduling_policy=policy), cluster("c2", name="red"))


def test_a_start_is_no_news(kept: Kept, clock: Clock) -> None:
    watch = UnitWatch(kept, clock)
    for now, disabled in ((0, "A"), (120, "A"), (130, ""), (200, "A"), (340, "A")):
        clock.now = now
        watch.look(state(*disabled))
    assert kept.notices == []


def test_it_begins_once_a_day_and_ends_once(kept: Kept, clock: Clock) -> None:
    watch = UnitWatch(kept, clock)
    for now in (0, 149, 151, 1000, 80_000):
        clock.now = now
        watch.look(state("A", "B"))
    assert kept.notices == [(NoticeKind.UNITS_DISABLED, {"cluster": "blue", "units": "A, B"})]
    clock.now = 151 + 24 * 3600
    watch.look(state("A", "B"))
    watch.look(state())
    watch.look(state())
    assert [kind for kind, _ in kept.notices[1:]] == [NoticeKind.UNITS_DISABLED, NoticeKind.UNITS_ENABLED]


def test_a_cluster_that_is_gone_is_forgotten(kept: Kept, clock: Clock) -> None:
    watch = UnitWatch(kept, clock)
    watch.look(state("A"))
    clock.now = 100
    watch.look(snapshot(cluster("c2", name="red")))
    clock.now = 200
    watch.look(state("A"))
    assert kept.notices == []
