"""The oracle of the limits counts by the clock that the enforcer goes by, and no finer."""

from __future__ import annotations

import pytest

from ovirt_enforcer.settings import EnforcerSettings
from tests.enforcer.safety.limits import Begun, passed

SETTINGS = EnforcerSettings(
    interval_seconds=700.0, cluster_migrations_per_cycle=1, cluster_migrations_per_hour=2
)


def begun(vm: str, at: float) -> Begun:
    return Begun(vm=vm, source="h1", target="h2", request=vm, at=at, tick=0, reading=0)


@pytest.mark.parametrize(("now", "faults"), [(723.0, 1), (723.9, 1), (723.9999963, 0), (724.0, 0)], ids=str)
def test_a_cycle_is_over_when_the_clock_of_the_store_says_so(now: float, faults: int) -> None:
    assert len(passed(SETTINGS, {}, [begun("a", 24.0)], [begun("b", now)], now)) == faults
