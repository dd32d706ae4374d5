"""What is known of the engine reaches those who look at once, however long nothing has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ovirt_placement_web.state import sources as module
from ovirt_placement_web.state.sources import LiveState
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import serve
from tests.builders import host, snapshot, vm
from tests.configuration import write_configuration
from tests.placement.inventory.running import loaded, running
from tests.scenarios.stage import START

PATIENCE_SECONDS = 30.0


@pytest.fixture
def engine() -> Engine:
    return Engine.from_snapshot(snapshot(host("h1"), vm("a")), clock=START, settings=PROMPT)


@pytest.fixture
def live(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveState]:
    """One that waits for a moment each time, and would pause for an hour."""
    monkeypatch.setattr(module, "_WAIT_SECONDS", 0.5)
    monkeypatch.setattr(module, "_PAUSE_SECONDS", 3600.0)
    server = serve(engine)
    file = write_configuration(
        tmp_path, f"{server.url}/ovirt-engine/api", inventory="interval_seconds = 0.05\n"
    )
    found = LiveState(loaded(file))
    with running(file):
        found.start()
        yield found
        found.stop()
    server.close()


@pytest.mark.system
def test_a_change_after_silence_is_known_at_once(engine: Engine, live: LiveState) -> None:
    async def follow() -> None:
        await until(lambda: live.view.known)
        for _ in range(3):  # it looks again and again while nothing is published, and does not pause
            looked_at = live.view
            await until(lambda looked_at=looked_at: live.view is not looked_at)
        with live.subscribed() as changed:
            number = live.view.number
            engine.vms.start("a")
            await changed.wait()
        assert live.view.number > number

    asyncio.run(asyncio.wait_for(follow(), PATIENCE_SECONDS))


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)
