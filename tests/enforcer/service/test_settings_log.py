"""With which settings an enforcer leads: `status` knows, whatever the file says since, and the history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ovirt_enforcer.cli.main import main
from ovirt_enforcer.service.settings_log import SettingsLog
from ovirt_enforcer.settings import EnforcerSettings, HaWatchSettings, MaintenanceSettings, Mode
from ovirt_placement.store.enforcer_settings import EnforcerSettingsStore
from ovirt_placement.store.leases import LeaseStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import Server, serve
from tests.builders import cluster, host, snapshot
from tests.configuration import write_configuration
from tests.enforcer.service.test_cycle_log import Asking
from tests.enforcer.service.test_process import running
from tests.proxy.running import eventually
from tests.scenarios.stage import START

DIFFERS = "The configuration here says mode enforce: it takes effect when ovirt-enforcer is restarted.\n"
EMPTY = snapshot(cluster("c1", name="blue"), host("h1", cluster="c1", name="alpha"))


@pytest.fixture
def server() -> Iterator[Server]:
    found = serve(Engine.from_snapshot(EMPTY, clock=START, settings=PROMPT))
    yield found
    found.close()


@pytest.mark.system
def test_a_mode_in_the_file_counts_and_is_recorded_once_it_leads_with_it(
    tmp_path: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    def configure(mode: str) -> Path:
        lease = "interval_seconds = 0.2\nlease_seconds = 0.6\n"
        return write_configuration(tmp_path, server.api_url, more=f'[enforcer]\nmode = "{mode}"\n{lease}')

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


def test_settings_are_flat_and_what_may_hold_a_password_is_not_among_them(tmp_path: Path) -> None:
    url, epoch = f"sqlite:///{tmp_path}/store.db", 1
    leases = LeaseStore(url, engine="default", patience_seconds=5)
    store = EnforcerSettingsStore(url, engine="default", patience_seconds=5, epoch=lambda: epoch)
    leases.take("one", 600.0)
    settings = EnforcerSettings(
        clusters={"blue": Mode.OBSERVE},
        ha=HaWatchSettings(repair=True),
        maintenance=MaintenanceSettings(command="tool --password secret"),
    )
    SettingsLog(store, settings, lambda: epoch).look()
    found = store.of_leader()
    assert found is not None
    assert {"mode", "clusters.blue", "ha.repair", "ha.hold_seconds", "windows"} <= set(found)
    assert "secret" not in str(found)
    assert not any(name.startswith(("notifications", "maintenance")) for name in found)
    leases.close()
    store.close()


def test_they_are_written_down_once_in_each_epoch(tmp_path: Path) -> None:
    url, epoch = f"sqlite:///{tmp_path}/store.db", 1
    leases = LeaseStore(url, engine="default", patience_seconds=5)
    leases.take("one", 600.0)
    store = EnforcerSettingsStore(url, engine="default", patience_seconds=5, epoch=lambda: epoch)
    log = SettingsLog(store, EnforcerSettings(), lambda: epoch)
    log.look()
    leases.release(1)
    leases.take("one", 600.0)
    log.look()  # asks no store, or it would raise `LeaseLost`
    assert store.of_leader() is None
    epoch = 2
    log.look()
    assert store.of_leader() is not None
    leases.close()
    store.close()
