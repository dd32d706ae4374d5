"""What is written down besides decisions: cycles, settings, and disabled policy units."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ovirt_enforcer.notices import NoticeKind
from ovirt_enforcer.settings import (
    EnforcerSettings,
    HaWatchSettings,
    MaintenanceSettings,
    Mode,
    recorded_settings,
)
from ovirt_enforcer.watchers.engine_watch import UnitWatch
from ovirt_placement.model import SchedulingPolicy
from ovirt_placement.store.enforcer.leader import Cycle, CycleStore, LeaseStore
from ovirt_placement.store.sql.access import LeaseLost
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server
from tests.builders import TOGETHER, cluster, group, host, snapshot, vm
from tests.clock import Clock
from tests.configuration import write_configuration
from tests.enforcer.conftest import Ask
from tests.enforcer.service.test_process import running
from tests.kit.notices import KeptNotices
from tests.placement.cli.documents import parsed
from tests.placement.store.conftest import Opening
from tests.proxy.running import eventually

STATE = snapshot(
    cluster("c1", name="blue"),
    host("h1", cluster="c1", name="alpha"),
    host("h2", cluster="c1", name="beta"),
    vm("v1", "h1", cluster="c1", name="web1"),
    vm("v2", "h2", cluster="c1", name="web2", migratable=False),
    group("g1", TOGETHER, "v1 v2", cluster="c1", name="web"),
)
QUICK = "interval_seconds = 0.2\npoll_seconds = 0.2\nlease_seconds = 0.6\nbreaker_failures = 1\n"


class Status:
    """What `ovirt-enforcer status` says of an enforcer in a mode."""

    def __init__(self, ask: Ask, server: Server, folder: Path) -> None:
        self._ask, self._url, self._folder = ask, server.api_url, folder

    def configure(self, mode: str) -> Path:
        return write_configuration(self._folder, self._url, more=f'[enforcer]\nmode = "{mode}"\n{QUICK}')

    def text(self) -> str:
        return self._ask("status --timeout 5").out

    def data(self) -> Any:
        return parsed(self._ask("status --timeout 5 --json").out)

    def enforcer(self) -> Any:
        return self.data()["enforcer"]

    def modes(self) -> tuple[str, str | None]:
        found = self.enforcer()
        return found["mode"], found["configured_mode"]


@pytest.fixture
def status(ask: Ask, server: Server, tmp_path: Path) -> Status:
    return Status(ask, server, tmp_path)


@pytest.mark.system
def test_the_last_cycle_is_reported_with_what_it_failed_of(status: Status, server: Server) -> None:
    file = status.configure("observe")
    assert status.enforcer()["last_cycle"] is None
    with running(file) as process:
        eventually(lambda: (status.enforcer()["last_cycle"] or {}).get("error", "") is None)
        assert "s ago, successful." in status.text()
        server.close()
        eventually(lambda: (status.enforcer()["last_cycle"] or {})["error"] is not None)
        assert re.search("Last cycle: .*s ago, failed: ", status.text())
        assert "the enforcer's last cycle failed" in status.data()["reasons"]
        process.end()
    # What it ended with is still known, and that nobody leads.
    found = status.enforcer()
    assert (found["leader"], found["last_cycle"]["error"] is None) == (None, False)


@pytest.mark.system
def test_an_open_breaker_and_what_the_engine_refused_are_reported(
    status: Status, server: Server, ask: Ask
) -> None:
    server.disturbances.add(Disturbance(method="POST", path="/migrate", drop="request", times=None))
    with running(status.configure("enforce")) as process:
        eventually(lambda: bool(status.enforcer()["breakers"]))
        (breaker,) = status.enforcer()["breakers"]
        assert breaker["cluster"]["name"] == "blue"
        assert breaker["reason"].startswith("1 migration failed here of late")
        assert "Breaker open in cluster blue: " in status.text()
        assert "cluster blue: the breaker is open: migrations failed there" in status.data()["reasons"]
        server.disturbances.clear()
        assert ask("resume").status == 0
        eventually(lambda: not status.enforcer()["breakers"])
        process.end()


def test_a_process_that_leads_no_more_writes_no_cycle(opening: Opening) -> None:
    leases, former = opening(LeaseStore), opening(CycleStore, epoch=lambda: 1)
    assert leases.take_lease("one", 600.0) == 1
    former.record(Cycle(epoch=1, error=None))
    leases.release(1)
    assert leases.take_lease("other", 600.0) == 2
    with pytest.raises(LeaseLost):
        former.record(Cycle(epoch=1, error="late"))
    found = former.last()
    assert found is not None
    assert (found.epoch, found.error) == (1, None)


DIFFERS = "The configuration here says mode enforce: it takes effect when ovirt-enforcer is restarted.\n"
CHANGED = "leads with changed settings: mode enforce, before observe"


@pytest.mark.system
def test_a_mode_in_the_file_counts_and_is_recorded_once_it_leads_with_it(status: Status, ask: Ask) -> None:
    file = status.configure("observe")
    with running(file) as process:
        eventually(lambda: status.enforcer()["last_cycle"] is not None)
        status.configure("enforce")
        assert status.modes() == ("observe", "enforce")
        text = status.text()
        assert "Enforcer: mode observe, led by " in text
        assert DIFFERS in text
        assert "changed settings" not in ask("history --who").out
        process.end()
    assert status.modes() == ("enforce", "enforce")  # nobody leads: what it will be
    with running(file) as process:
        eventually(lambda: CHANGED in ask("history --who").out)
        assert status.modes() == ("enforce", "enforce")
        assert "here says mode" not in status.text()
        eventually(lambda: CHANGED in process.log)
        process.end()


def test_settings_are_flat_and_what_may_hold_a_password_is_not_among_them() -> None:
    settings = EnforcerSettings(
        clusters={"blue": Mode.OBSERVE},
        ha=HaWatchSettings(repair=True),
        maintenance=MaintenanceSettings(command="tool --password secret"),
    )
    found = recorded_settings(settings)
    assert {"mode", "clusters.blue", "ha.repair", "ha.hold_seconds", "windows"} <= set(found)
    assert "secret" not in str(found)
    assert not any(name.startswith(("notifications", "maintenance")) for name in found)


@pytest.fixture
def kept() -> KeptNotices:
    return KeptNotices()


#: The clock, and the disabled units of cluster blue; None where it is gone.
Looks = Sequence[tuple[float, str | None]]


def watch_units(kept: KeptNotices, looks: Looks) -> None:
    clock = Clock()
    watch = UnitWatch(kept, clock)
    for clock.now, disabled in looks:
        policy = SchedulingPolicy(disabled=tuple(disabled or ""))
        blue = [] if disabled is None else [cluster("c1", name="blue", scheduling_policy=policy)]
        watch.observe(snapshot(*blue, cluster("c2", name="red")))


@pytest.mark.parametrize(
    "looks",
    [[(0, "A"), (120, "A"), (130, ""), (200, "A"), (340, "A")], [(0, "A"), (100, None), (200, "A")]],
    ids=["a start", "a cluster that was gone"],
)
def test_disabled_units_that_are_no_news(kept: KeptNotices, looks: Looks) -> None:
    watch_units(kept, looks)
    assert kept.notices == []


def test_disabled_units_are_reported_once_a_day_and_their_end_once(kept: KeptNotices) -> None:
    day = 24 * 3600
    watch_units(kept, [*((now, "AB") for now in (0, 149, 151, 1000, 80_000))])
    (notice,) = kept.notices
    assert (notice.kind, notice.facts) == (NoticeKind.UNITS_DISABLED, {"cluster": "blue", "units": "A, B"})
    kept.notices.clear()
    watch_units(kept, [(0, "AB"), (151, "AB"), (151 + day, "AB"), (151 + day, ""), (151 + day, "")])
    assert kept.kinds == [NoticeKind.UNITS_DISABLED] * 2 + [NoticeKind.UNITS_ENABLED]
