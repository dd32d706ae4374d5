"""What goes with a run: VMs that hold up a host, those that go home, and the flag in the engine."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ovirt_enforcer.maintenance.run_state import UpgradeFlags, way_home
from ovirt_enforcer.watchers.engine_watch import DrainWatch
from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.store.enforcer.intents import IntentState
from ovirt_placement.store.enforcer.maintenance import HostPhase, MaintenanceRequest, MaintenanceRun
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Caller
from ovirt_simulator.http.server import serve
from tests.builders import CLUSTER, host, snapshot, vm
from tests.enforcer.gates.judging import intent
from tests.enforcer.maintenance.runs import host_of_run, run_of
from tests.kit.notices import KeptNotices
from tests.scenarios.stage import START

PATIENCE = 60.0
HOSTS = ("h1", "h2", "h3")
DONE, FAILED = IntentState.DONE, IntentState.FAILED


def run_emptied(
    *vms_of_hosts: Sequence[str], phase: HostPhase = HostPhase.DONE, **fields: Any
) -> MaintenanceRun:
    """A run of the first hosts, each with the VMs that it was emptied of."""
    hosts = (
        host_of_run(phase, host=name, name=name, position=at, vms=tuple(vms))
        for at, (name, vms) in enumerate(zip(HOSTS, vms_of_hosts, strict=False))
    )
    return run_of(*hosts, **{"request": MaintenanceRequest(back=Return.ALL), **fields})


class Look(NamedTuple):
    """What is seen of a host: how long after the last time, whether it is being emptied, and who is there."""

    seconds: int
    draining: bool
    there: str


LOOKS = st.lists(
    st.builds(
        Look,
        st.sampled_from([20, 40, 60]),
        st.sampled_from([True] * 7 + [False]),
        st.sampled_from(["a", "b", "ab", ""]),
    ),
    min_size=2,
    max_size=12,
)


@given(LOOKS)
@example([Look(20, True, ""), Look(60, True, "")])
@example([Look(20, True, "a"), Look(60, True, "a"), Look(60, True, "a")])
def test_a_host_is_reported_whose_vms_stay_the_same_for_long(looks: list[Look]) -> None:
    """Not an empty one, and once for the same VMs."""
    notified, now = KeptNotices(), 0.0
    watch = DrainWatch(notified, lambda: now, PATIENCE)
    expected: list[str] = []
    same, same_since, said = "nothing yet", 0.0, ""
    for look in looks:
        now += look.seconds
        status = "preparing_for_maintenance" if look.draining else "up"
        vms = [vm(name, "h1", migratable=False) for name in look.there]
        watch.observe(snapshot(host("h1", status=status), host("h2"), *vms))
        if not look.draining:
            same, said = "nothing yet", ""
        elif look.there != same:
            same, same_since = look.there, now
        elif look.there and now - same_since >= PATIENCE and said != look.there:
            said = look.there
            expected.append("; ".join(f"{name} cannot migrate" for name in look.there))
    assert [notice.facts["reason"] for notice in notified.notices] == expected


@st.composite
def ways(draw: st.DrawFn) -> tuple[tuple[str, str], dict[str, str], dict[tuple[str, str], tuple[int, bool]]]:
    """Whom two hosts were emptied of, where the VMs are now, and how often they failed and came to a host."""
    emptied = draw(st.tuples(*[st.sampled_from(["a", "ab", "b", ""])] * 2))
    now = {name: draw(st.sampled_from(HOSTS)) for name in "ab"}
    tries = {
        (name, target): (draw(st.sampled_from([0, 2, 3])), draw(st.sampled_from([False, False, True])))
        for name in "ab"
        for target in HOSTS
    }
    return emptied, now, tries


@given(ways())
def test_who_goes_home_where_to_and_who_no_more(
    drawn: tuple[tuple[str, str], dict[str, str], dict[tuple[str, str], tuple[int, bool]]],
) -> None:
    """To the first host that it was taken off, once; after three failures on that way it stays."""
    emptied, now, tries = drawn
    migrations = [
        intent(state, 1.0, name, source=source, target=target)
        for (name, target), (failures, arrived) in tries.items()
        for source in [next(one for one in HOSTS if one != target)]
        for state in [FAILED] * failures + [DONE] * arrived
    ]
    world = snapshot(*map(host, HOSTS), *(vm(name, at) for name, at in now.items()))
    home = {name: at for at, vms in reversed([*zip(HOSTS, emptied, strict=False)]) for name in vms}
    going = {name: at for name, at in home.items() if now[name] != at and not tries[name, at][1]}
    way = way_home(run_emptied(*emptied), world, migrations)
    assert way is not None
    assert {one.vm: one.source for one in way.moved} == going
    assert set(way.given_up) == {name for name, at in going.items() if tries[name, at][0] >= 3}


@pytest.mark.parametrize("phase", [HostPhase.DONE, HostPhase.WAITING])
def test_another_programs_upgrade_is_left_alone_and_ours_is_shown_after_it(
    phase: HostPhase, caplog: pytest.LogCaptureFixture
) -> None:
    engine = Engine.from_snapshot(snapshot(host("h1")), clock=START)
    server = serve(engine)
    settings = EngineSettings(url=server.api_url, username="admin@internal")
    run = run_emptied("a", phase=phase)

    def shown() -> tuple[bool, str | None, int]:
        (found,) = engine.queries.state.clusters.values()
        return found.upgrade_mode, found.upgrade_correlation_id, found.upgrade_percent

    with closing(server), EngineConnection(settings, {"OVIRT_PASSWORD": "password"}) as connection:
        flags = UpgradeFlags(connection)
        engine.upgrades.start(CLUSTER, caller=Caller(correlation_id="ansible"))
        for _ in range(2):
            flags.show(run)
        flags.finish(CLUSTER, run.id)
        assert shown() == (True, "ansible", 0)
        assert caplog.messages == []
        engine.upgrades.finish(CLUSTER, caller=Caller(correlation_id="ansible"))
        flags.show(run)
        assert shown() == (True, "maintenance-r", 100 if phase is HostPhase.DONE else 0)
        flags.finish(CLUSTER, run.id)
        assert not shown()[0]
