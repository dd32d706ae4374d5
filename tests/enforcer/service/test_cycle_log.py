"""How the last cycle ended, open breakers and remembered refusals, as `status` reports them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ovirt_enforcer.cli.main import main
from ovirt_placement.store.leases import LeaseStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.disturbances import Disturbance
from ovirt_simulator.http.server import Server, serve
from tests.builders import TOGETHER, cluster, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.service.test_process import running
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
    from ovirt_placement.store.cycles import Cycle, CycleStore
    from ovirt_placement.store.fencing import LeaseLost

    url = f"sqlite:///{tmp_path}/store.db"
    leases = LeaseStore(url, engine="default", patience_seconds=5)
    assert leases.take("one", 600.0) == 1
    former = CycleStore(url, engine="default", patience_seconds=5, epoch=lambda: 1)
    former.record(Cycle(epoch=1, error=None))
    leases.release(1)
    assert leases.take("other", 600.0) == 2
    with pytest.raises(LeaseLost):
        former.record(Cycle(epoch=1, error="late"))
    found = former.last()
    assert found is not None
    assert (found.epoch, found.error) == (1, None)
    former.close()
    leases.close()
