"""Hosts whose CPUs are too busy: the simulated engine refuses them once that has lasted."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import Rejected
from tests.builders import cluster, host, vm
from tests.simulator.core import engines

#: Between two looks at the statistics of hosts.
LOOK_SECONDS = PROMPT.statistics_seconds


def accepts(engine: Engine) -> bool:
    try:
        engine.vms.start("v")
    except Rejected as refusal:
        return "CPUOverloaded because its CPU is too loaded" not in refusal.detail
    return True


def set_load(engine: Engine, percent: float) -> None:
    state = engine._backend.state
    state.put(state.hosts, replace(state.hosts["h1"], cpu_percent=percent))


def busy_engine(percent: float | None, **properties: str) -> Engine:
    """One host, which bears no part of the load for managing storage."""
    return engines.engine(
        cluster(scheduling_properties=properties),
        host("h1", cpu_percent=percent, measured=True),
        host("elsewhere", status="maintenance", spm=True),
        vm("v"),
    )


@given(st.lists(st.sampled_from([0, 50, 75, 80, 90, 91, 100]), min_size=1, max_size=24))
def test_a_host_is_refused_that_has_been_busy_or_idle_ever_since(loads: Sequence[int]) -> None:
    """Above 90 % now, and at 75 % or more, or at nothing, at each look for two minutes."""
    engine = busy_engine(loads[0])
    for load in loads[1:]:
        set_load(engine, load)
        engine.advance(LOOK_SECONDS)
    # The first load is seen at the start, each other one a look later.
    calm = [number for number, load in enumerate(loads) if 0 < load < 75]
    first = calm[-1] + 1 if calm else 0
    lasting = (len(loads) - 1 - first) * LOOK_SECONDS
    assert accepts(engine) is not (loads[-1] > 90 and lasting >= 120)


@pytest.mark.parametrize(("minutes", "refused"), [("1", True), ("4", False)])
def test_the_policy_says_how_busy_is_too_busy_and_for_how_long(minutes: str, *, refused: bool) -> None:
    engine = busy_engine(61, HighUtilization="60", CpuOverCommitDurationMinutes=minutes)
    engine.advance(180)
    assert accepts(engine) is not refused


def test_a_host_without_statistics_is_refused_at_once_and_without_a_reason() -> None:
    with pytest.raises(Rejected) as refused:
        busy_engine(None).vms.start("v")
    assert "CPUOverloaded" not in refused.value.detail


def test_of_a_state_file_without_statistics_nothing_is_held_against_hosts() -> None:
    engine = engines.engine(host("h1", cpu_percent=None), vm("v"))
    engine.advance(600)
    engine.vms.start("v")
