"""Events of starts say more than is expected, and sooner than the VM shows it."""

from __future__ import annotations

import pytest

from ovirt_placement.engine.events import EngineEvent
from ovirt_placement.inventory.service.events import reported_start


def heard(code: int, vm: str | None = "v", host: str | None = "h") -> list[tuple[str, str | None, float]]:
    found: list[tuple[str, str | None, float]] = []
    event = EngineEvent(
        id=1,
        code=code,
        severity="normal",
        time=0.0,
        description="",
        correlation_id=None,
        vm=vm,
        host=host,
        cluster=None,
    )
    reported_start(event, 5.0, lambda *reported: found.append(reported))
    return found


@pytest.mark.parametrize("code", [32, 152, 153, 506])
def test_a_start_reports_its_host(code: int) -> None:
    assert heard(code) == [("v", "h", 5.0)]
    assert heard(code, host=None) == []


@pytest.mark.parametrize("code", [54, 61, 119, 507])
def test_a_start_that_failed_or_a_vm_that_is_down_is_nowhere(code: int) -> None:
    assert heard(code) == [("v", None, 5.0)]


@pytest.mark.parametrize(("code", "vm"), [(62, "v"), (32, None), (54, None)])
def test_other_events_report_nothing(code: int, vm: str | None) -> None:
    assert heard(code, vm) == []
