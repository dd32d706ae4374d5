"""Parts of the page by themselves: the live state, a configuration that is read again, and acts."""

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ovirt_placement import config
from ovirt_placement.answers.status.health import HealthState, StateSource, StatusDocument
from ovirt_placement_web.bounds import Bounds, WebMetrics
from ovirt_placement_web.state import sources as module
from ovirt_placement_web.state.questions import Memory, Questions
from ovirt_placement_web.state.sources import LiveState, Past, View
from ovirt_placement_web.views import endpoints
from ovirt_placement_web.views.endpoints import Act
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import cluster, host, snapshot, vm
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


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The outcomes in the audit log, of acts that the engine permits."""

    async def permitted(asked: object, act: Act) -> None:
        pass

    found: list[str] = []
    monkeypatch.setattr(endpoints, "_check_permits", permitted)
    monkeypatch.setattr(endpoints, "note", lambda *words, **more: found.append(words[3]))
    return found


class Ann:
    """Who asks."""

    rights = SimpleNamespace(user_name="ann")


def asked() -> Any:
    limits = Bounds(WebMetrics(), streams=5, streams_each=5)
    site = SimpleNamespace(bounds=limits, root="")
    return SimpleNamespace(request=None, session=Ann(), site=site)


def test_an_act_that_fails_as_nobody_foresaw_is_a_line_of_the_audit_log(noted: list[str]) -> None:
    act = Act("pause", (cluster(),), lambda who: [].pop(), "/")
    with pytest.raises(IndexError):
        asyncio.run(endpoints._carry_out(asked(), act))
    assert noted == ["not known: IndexError('pop from empty list')"]


@pytest.mark.parametrize("plans", [False, True])
def test_acts_that_plan_take_no_place_of_those_that_do_not(noted: list[str], plans: bool) -> None:
    by = asked()
    free = []

    def carry_out(who: str) -> None:
        free.append((by.site.bounds.acts._free, by.site.bounds.plans._free))

    before = (by.site.bounds.acts._free, by.site.bounds.plans._free)
    asyncio.run(endpoints._carry_out(by, Act("begin", (cluster(),), carry_out, "/", plans=plans)))
    assert free == [(before[0] - (not plans), before[1] - plans)]
    assert noted == ["done"]


def test_a_mode_that_was_changed_since_is_not_called_one_that_is_still_to_come(tmp_path: Path) -> None:
    path = write_configuration(
        tmp_path, "http://127.0.0.1:1/ovirt-engine/api", more='[enforcer]\nmode = "observe"\n'
    )
    found = config.load(path)
    past, memory = Past(found), Memory()
    parts = HealthState(snapshot=snapshot(host("h1")), source=StateSource(kind="inventory", where="here"))

    def status(number: int) -> StatusDocument:
        return Questions(found, past, memory, View(number, parts, time.monotonic(), None)).status()

    def configured_mode(number: int) -> str | None:
        enforcer = status(number).enforcer
        return None if enforcer is None else enforcer.configured_mode

    assert configured_mode(1) == "observe"
    path.write_text(path.read_text().replace("observe", "approve"))
    assert configured_mode(2) == "approve"
    path.write_text(path.read_text().replace("approve", "aprove"))
    assert configured_mode(3) is None
    path.write_text("[engine")
    (mistake,) = status(4).mistakes
    assert str(path) in mistake
