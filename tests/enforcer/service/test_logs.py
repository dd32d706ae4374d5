"""What is written down besides decisions: cycles, settings, and disabled policy units."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ovirt_enforcer.cli.main import main
from ovirt_enforcer.notices import NoticeKind
from ovirt_enforcer.settings import (
    EnforcerSettings,
    HaWatchSettings,
    MaintenanceSettings,
    Mode,
    recorded_settings,
)
from ovirt_enforcer.watchers.engine_watch import UnitWatch
from ovirt_placement.model import SchedulingPolicy, Snapshot
from ovirt_placement.store.enforcer.leader import Cycle, CycleStore, LeaseStore
from ovirt_placement.store.sql.access import LeaseLost
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server, serve
from tests.builders import TOGETHER, cluster, group, host, snapshot, vm
from tests.clock import Clock
from tests.configuration import write_configuration
from tests.enforcer.service.test_process import running
from tests.kit.notices import KeptNotices
from tests.placement.cli.documents import parsed
from tests.proxy.running import eventually
from tests.scenarios.stage import START

STATE = snapshot(
    cluster("c1", name="blue"),
    host("h1", cluster="c1", name="alpha"),
    host("h2", cluster="c1", name="beta"),
    vm("v1", "h1", cluster="c1", name="web1"),
    vm("v2", "h2", cluster="c1", name="web2", migratable=False),
    group("g1", TOGETHER, "v1 v2", cluster="c1", name="web"),
)
QUICK = "interval_seconds = 0.2\npoll_seconds = 0.2\nlease_seconds = 0.6\nbreaker_failures = 1\n"


@pytest.fixture
def server() -> Iterator[Server]:
    found = serve(Engine.from_snapshot(STATE, clock=START, settings=PROMPT))
    yield found
    found.close()


class Asking:
    def __init__(self, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._file, self._capsys = str(file), capsys

    def text(self) -> str:
        self._capsys.readouterr()
        main(["status", "--timeout", "5", "--config", self._file])
        return self._capsys.readouterr().out

    def enforcer(self) -> Any:
        self._capsys.readouterr()
        main(["status", "--timeout", "5", "--json", "--config", self._file])
        return parsed(self._capsys.readouterr().out)["enforcer"]

    def reasons(self) -> Any:
        self._capsys.readouterr()
        main(["status", "--timeout", "5", "--json", "--config", self._file])
        return parsed(self._capsys.readouterr().out)["reasons"]


def asking(
    folder: Path, server: Server, capsys: pytest.CaptureFixture[str], mode: str
) -> tuple[Path, Asking]:
    file = write_configuration(folder, server.api_url, more=f'[enforcer]\nmode = "{mode}"\n{QUICK}')
    return file, Asking(file, capsys)


@pytest.mark.system
def test_the_last_cycle_is_reported_with_what_it_failed_of(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    file, ask = asking(tmp_path, server, capsys, "observe")
    assert ask.enforcer()["last_cycle"] is None
    with running(file) as process:
        eventually(lambda: (ask.enforcer()["last_cycle"] or {}).get("error", "") is None)
        assert "s ago, successful." in ask.text()
        server.close()
        eventually(lambda: (ask.enforcer()["last_cycle"] or {})["error"] is not None)
        assert "Last cycle: " in ask.text()
        assert "s ago, failed: " in ask.text()
        assert "the enforcer's last cycle failed" in ask.reasons()
        process.end()
    # What it ended with is still known, and that nobody leads.
    found = ask.enforcer()
    assert (found["leader"], found["last_cycle"]["error"] is None) == (None, False)


@pytest.mark.system
def test_an_open_breaker_and_what_the_engine_refused_are_reported(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    file, ask = asking(tmp_path, server, capsys, "enforce")
    server.disturbances.add(Disturbance(method="POST", path="/migrate", drop="request", times=None))
    with running(file) as process:
        eventually(lambda: bool(ask.enforcer()["breakers"]))
        (breaker,) = ask.enforcer()["breakers"]
        assert breaker["cluster"]["name"] == "blue"
        assert breaker["reason"].startswith("1 migration failed here of late")
        assert "Breaker open in cluster blue: " in ask.text()
        assert "cluster blue: the breaker is open: migrations failed there" in ask.reasons()
        server.disturbances.clear()
        assert main(["resume", "--config", str(file)]) == 0
        eventually(lambda: not ask.enforcer()["breakers"])
        process.end()


def test_a_process_that_leads_no_more_writes_no_cycle(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    leases = LeaseStore(url, engine="default", patience_seconds=5)
    assert leases.take_lease("one", 600.0) == 1
    former = CycleStore(url, engine="default", patience_seconds=5, epoch=lambda: 1)
    former.record(Cycle(epoch=1, error=None))
    leases.release(1)
    assert leases.take_lease("other", 600.0) == 2
    with pytest.raises(LeaseLost):
        former.record(Cycle(epoch=1, error="late"))
    found = former.last()
    assert found is not None
    assert (found.epoch, found.error) == (1, None)
    former.close()
    leases.close()


DIFFERS = "The configuration here says mode enforce: it takes effect when ovirt-enforcer is restarted.\n"
EMPTY = snapshot(cluster("c1", name="blue"), host("h1", cluster="c1", name="alpha"))


@pytest.fixture
def settings_server() -> Iterator[Server]:
    found = serve(Engine.from_snapshot(EMPTY, clock=START, settings=PROMPT))
    yield found
    found.close()


@pytest.mark.system
def test_a_mode_in_the_file_counts_and_is_recorded_once_it_leads_with_it(
    tmp_path: Path, settings_server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    def configure(mode: str) -> Path:
        lease = "interval_seconds = 0.2\nlease_seconds = 0.6\n"
        return write_configuration(
            tmp_path, settings_server.api_url, more=f'[enforcer]\nmode = "{mode}"\n{lease}'
        )

    def modes() -> tuple[str, str | None]:
        found = ask.enforcer()
        return found["mode"], found["configured_mode"]

    def by_whom() -> str:
        capsys.readouterr()
        assert main(["history", "--who", "--config", str(file)]) == 0
        return capsys.readouterr().out

    file = configure("observe")
    ask = Asking(file, capsys)
    with running(file) as process:
        eventually(lambda: ask.enforcer()["last_cycle"] is not None)
        configure("enforce")
        assert modes() == ("observe", "enforce")
        text = ask.text()
        assert "Enforcer: mode observe, led by " in text
        assert DIFFERS in text
        assert "changed settings" not in by_whom()
        process.end()
    assert modes() == ("enforce", "enforce")  # nobody leads: what it will be
    with running(file) as process:
        eventually(lambda: "leads with changed settings: mode enforce, before observe" in by_whom())
        assert modes() == ("enforce", "enforce")
        assert "here says mode" not in ask.text()
        eventually(lambda: "leads with changed settings: mode enforce, before observe" in process.log)
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
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kept() -> KeptNotices:
    return KeptNotices()


def state(*disabled: str) -> Snapshot:
    policy = SchedulingPolicy(disabled=disabled)
    return snapshot(cluster("c1", name="blue", scheduling_policy=policy), cluster("c2", name="red"))


def test_a_start_is_no_news(kept: KeptNotices, clock: Clock) -> None:
    watch = UnitWatch(kept, clock)
    for now, disabled in ((0, "A"), (120, "A"), (130, ""), (200, "A"), (340, "A")):
        clock.now = now
        watch.observe(state(*disabled))
    assert kept.notices == []


def test_it_begins_once_a_day_and_ends_once(kept: KeptNotices, clock: Clock) -> None:
    watch = UnitWatch(kept, clock)
    for now in (0, 149, 151, 1000, 80_000):
        clock.now = now
        watch.observe(state("A", "B"))
    (notice,) = kept.notices
    assert (notice.kind, notice.facts) == (NoticeKind.UNITS_DISABLED, {"cluster": "blue", "units": "A, B"})
    clock.now = 151 + 24 * 3600
    watch.observe(state("A", "B"))
    watch.observe(state())
    watch.observe(state())
    assert kept.kinds[1:] == [NoticeKind.UNITS_DISABLED, NoticeKind.UNITS_ENABLED]


def test_a_cluster_that_is_gone_is_forgotten(kept: KeptNotices, clock: Clock) -> None:
    watch = UnitWatch(kept, clock)
    watch.observe(state("A"))
    clock.now = 100
    watch.observe(snapshot(cluster("c2", name="red")))
    clock.now = 200
    watch.observe(state("A"))
    assert kept.notices == []
