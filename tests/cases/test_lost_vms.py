"""Highly available VMs that crashed, are unknown or stand on silent hosts: lost until they run again."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ovirt_enforcer.watchers.verdict import ReservationState, judge
from ovirt_placement.answers.document import safe_word
from ovirt_placement.answers.status.clusters import Health, cluster_status
from ovirt_placement.answers.status.clusters import judge as judge_health
from ovirt_placement.config import HaSettings
from ovirt_placement.model import Snapshot, Vm, state_file
from ovirt_placement.model.infrastructure import HOST_STATUSES
from ovirt_placement_web.site import environment
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import Rejected
from tests.builders import CLUSTER, cluster, host, needed_mb, snapshot, vm
from tests.cases.conftest import STATES, Ask

UI: Any = environment().get_template("ui.html").module
#: Of a host in these states its VMs run on.
_ANSWER = {"up", "preparing_for_maintenance", "non_operational"}


def test_with_no_host_up_nothing_is_healthy_or_safe(ask: Ask) -> None:
    found = ask("ovirt-placement status", "all-hosts-silent")
    assert found.status == 1
    assert found.text.startswith(
        "Unhealthy: cluster c: 6 highly available VMs are not known to run and find no host: v0, "
    )
    assert "6 VMs, unsafe, 6 lost" in found.text
    assert "0 of 6" in found.text


def test_a_host_that_does_not_answer_is_asked_about_like_any_other(ask: Ask) -> None:
    checked = ask("ovirt-placement ha-check --hosts h1", "silent-host-and-no-home")
    assert checked.status == 1
    assert "a is unknown on h1, which is non_responsive: finds no host" in checked.text
    foreseen = ask("ovirt-placement what-if --down h1 --fail-if unplaced", "silent-host-and-no-home")
    assert foreseen.status == 3
    assert "a finds no host" in foreseen.text
    assert "hosts that may fail at once: 0 now, 0 with it" in foreseen.text


def test_a_host_that_is_not_operational_may_fail_like_any_other(ask: Ask) -> None:
    assert "If h1 failed:\n  a: " in ask("ovirt-placement ha-check", "non-operational-and-no-home").text
    assert ask("ovirt-placement status", "non-operational-and-no-home").text.startswith("Unhealthy")


def test_the_alert_stays_while_a_vm_is_down_and_finds_no_host() -> None:
    state = state_file.load(STATES / "silent-host-and-no-home.json")
    verdict = judge(state, state.clusters[0].id, HaSettings())
    assert verdict.state is ReservationState.UNSAFE
    assert verdict.facts["losses"].startswith("no host takes, as things are, 1 VM (")
    assert (verdict.vms_without_home, verdict.failures_survived) == (1, 0)


def test_what_is_down_and_has_a_host_is_not_called_safe_before_it_runs() -> None:
    state = snapshot(cluster(ha_reservation=True), host("h1"), host("h2"), vm("a", ha=True, crashed=True))
    verdict = judge(state, CLUSTER, HaSettings())
    assert (verdict.state, verdict.facts["reason"]) == (ReservationState.UNKNOWN, "1 VM is down: a")


@st.composite
def outages(draw: st.DrawFn) -> Snapshot:
    """Hosts in any state, with VMs on them, down by intent, crashed or unknown."""
    statuses = draw(st.lists(st.sampled_from(sorted(HOST_STATUSES) + ["up"] * 12), min_size=1, max_size=4))
    hosts = [host(f"h{at}", status=one) for at, one in enumerate(statuses)]
    vms = []
    for at in range(draw(st.integers(0, 4))):
        home = draw(st.sampled_from([*(one.id for one in hosts), None]))
        crashed = home is None and draw(st.booleans())
        status = draw(st.sampled_from(["up", "up", "unknown", "paused"])) if home else "down"
        vms.append(vm(f"v{at}", home, ha=draw(st.booleans()), status=status, crashed=crashed))
    return snapshot(cluster(ha_reservation=draw(st.booleans())), *hosts, *vms)


@given(outages())
def test_green_means_that_every_highly_available_vm_runs_or_rests_by_intent(state: Snapshot) -> None:
    answering = {one.id for one in state.hosts if one.status in _ANSWER}
    runs_or_rests = all(
        (one.host in answering and one.status != "unknown") or (one.host is None and not one.crashed)
        for one in state.vms
        if one.ha
    )
    status = cluster_status(state, CLUSTER)
    health, _ = judge_health(None, (), [status], None, None)
    assert health is not Health.HEALTHY or runs_or_rests
    assert health is Health.HEALTHY or UI.condition(status, lambda text, tone: text) != "Healthy", (
        "the page says no other"
    )
    assert runs_or_rests or status.ha_safe is not True
    assert judge(state, CLUSTER, HaSettings()).state is not ReservationState.SAFE or runs_or_rests


#: What befalls hosts and VMs, by turns, and how many seconds pass afterwards.
DEEDS = st.lists(
    st.tuples(
        st.sampled_from(["fail", "recover", "deactivate", "activate", "crash", "nothing"]),
        st.integers(0, 3),
        st.sampled_from([0, 1, 30, 90, 600]),
    ),
    min_size=1,
    max_size=8,
)


def befall(engine: Engine, deed: str, number: int) -> None:
    """Nothing, where the engine refuses it."""
    name = f"h{number % 3}" if deed != "crash" else f"v{number}"
    acts = {
        "fail": engine.hosts.fail,
        "recover": engine.hosts.recover,
        "deactivate": engine.hosts.deactivate,
        "activate": engine.hosts.activate,
        "crash": engine.vms.crash,
        "nothing": lambda _: None,
    }
    with suppress(Rejected):
        acts[deed](name)


def runs_or_could_start(state: Snapshot, one: Vm) -> bool:
    """It runs on a host that answers, is down by intent, or some host that is up has room for it."""
    hosts = {each.id: each for each in state.hosts}
    if one.host is not None:
        return hosts[one.host].status in _ANSWER and one.status != "unknown"
    room = any(each.status == "up" and each.free_mb >= needed_mb(one) for each in hosts.values())
    return room or not one.crashed


@given(rooms=st.lists(st.sampled_from([2048, 8192]), min_size=3, max_size=3), deeds=DEEDS)
def test_health_is_green_only_if_every_highly_available_vm_runs_or_could_start(
    rooms: list[int], deeds: list[tuple[str, int, int]]
) -> None:
    hosts = [host(f"h{at}", memory_mb=16384, free_mb=room) for at, room in enumerate(rooms)]
    vms = [vm(f"v{at}", f"h{at % 3}", ha=True, needs_mb=2048) for at in range(4)]
    engine = Engine.from_snapshot(
        snapshot(cluster(ha_reservation=True), *hosts, *vms), clock=datetime(2026, 1, 1, tzinfo=UTC)
    )
    for deed, number, seconds in deeds:
        befall(engine, deed, number)
        engine.advance(seconds)
        state = engine.snapshot()
        status = cluster_status(state, CLUSTER)
        green = judge_health(None, (), [status], None, None)[0] is Health.HEALTHY
        fine = all(runs_or_could_start(state, one) for one in state.vms if one.ha)
        assert fine or not green
        assert fine or safe_word(status.ha_safe) != "safe"
