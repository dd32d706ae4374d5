"""A leader that was stopped and wakes late sends nothing that the next one has written down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ovirt_enforcer.ha_monitor.ledger import Ledger
from ovirt_enforcer.ha_monitor.verdict import ReservationState, ReservationVerdict
from ovirt_enforcer.notifications.courier import Courier
from ovirt_enforcer.notifications.kinds import NoticeKind
from ovirt_enforcer.notifications.notice import Notice
from ovirt_enforcer.notifications.notifications import Notifications
from ovirt_placement.store.fencing import LeaseLost
from ovirt_placement.store.ha_announcements import HaAnnouncementStore
from ovirt_placement.store.leases import LeaseStore
from tests.proxy.running import eventually

FACTS = {"cluster": "blue", "losses": "host h1", "missing_mb": "1", "vms_without_home": "1"}
VERDICT = ReservationVerdict(cluster="c1", name="blue", state=ReservationState.UNSAFE, facts=FACTS)


class Ears:
    """A channel that keeps what it gets."""

    name = "ears"

    def __init__(self) -> None:
        self.heard: list[Notice] = []

    def send(self, notice: Notice) -> None:
        self.heard.append(notice)


class Process:
    """One enforcer's ledger, in the epoch in which it led, or believes that it leads."""

    def __init__(self, url: str, epoch: int) -> None:
        self.ears = Ears()
        self.store = HaAnnouncementStore(url, engine="default", patience_seconds=30, epoch=lambda: epoch)
        reported = Notifications([Courier(self.ears, NoticeKind)], "default")
        self.ledger = Ledger(self.store, reported, lambda: 0.0, lambda: epoch)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/store.db"


@pytest.fixture
def process(url: str) -> Iterator[Callable[[int], Process]]:
    made: list[Process] = []

    def make(epoch: int) -> Process:
        made.append(Process(url, epoch))
        return made[-1]

    yield make
    for one in made:
        one.store.close()


def test_what_the_next_one_has_written_is_not_sent_by_the_one_before(
    url: str, process: Callable[[int], Process]
) -> None:
    leases = LeaseStore(url, engine="default", patience_seconds=30)
    assert leases.take("first", 600.0) == 1
    leases.release(1)
    assert leases.take("second", 600.0) == 2
    leases.close()
    first, second = process(1), process(2)
    second.ledger.write(NoticeKind.HA_ALERT, VERDICT)
    with pytest.raises(LeaseLost):
        first.ledger.deliver({"c1"})
    second.ledger.deliver({"c1"})
    eventually(lambda: bool(second.ears.heard))
    assert first.ears.heard == []
    assert [notice.kind for notice in second.ears.heard] == [NoticeKind.HA_ALERT]
