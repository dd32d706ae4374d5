"""Readings of a simulated engine: what a state file says comes back through the REST API."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.topology import read_snapshot, read_statistics
from ovirt_placement.model import AffinityRule, SchedulingPolicy, Snapshot, state_file
from ovirt_placement.model.infrastructure import VmStatistics
from ovirt_placement.model.snapshot import HOST_STATISTICS, VM_STATISTICS
from tests import builders
from tests.placement.engine.simulated import simulated
from tests.placement.model.test_state_file import AROUND, VECTORS


def vector(path: Path) -> Snapshot:
    state = {key: value for key, value in json.loads(path.read_text()).items() if key not in AROUND}
    return state_file.loads(json.dumps(state).encode())


def shown(state: Snapshot) -> Snapshot:
    """Leave of a state what the REST API shows of it, in the order of ids."""
    return replace(
        state,
        data_centers=(),
        clusters=tuple(
            replace(cluster, data_center=None, policy={}, scheduling_policy=None)
            for cluster in state.clusters
        ),
        hosts=tuple(
            replace(
                host,
                threads=None,
                memory_free_mb=None,
                swap_free_mb=None,
                load_average_5m=None,
                spm=False,
                cpu_percent=host.cpu_percent if host.up else None,
                measured=True,
            )
            for host in state.hosts
        ),
        vms=tuple(
            sorted(
                (
                    # What has no device in a state file is read as a headless VM.
                    replace(vm, template=None, running_since=None, video_mb=vm.video_mb or builders.VGA_MB)
                    for vm in state.vms
                ),
                key=lambda vm: vm.id,
            )
        ),
        affinity_groups=tuple(
            replace(group, vms_rule=shown_rule(group.vms_rule), hosts_rule=shown_rule(group.hosts_rule))
            for group in state.affinity_groups
        ),
        pending=(),
    )


def shown_rule(rule: AffinityRule) -> AffinityRule:
    """A disabled rule has no polarity."""
    return rule if rule.enabled else replace(rule, positive=False)


@pytest.mark.parametrize("path", VECTORS[::3], ids=lambda path: path.stem)
def test_what_a_state_says_comes_back(path: Path) -> None:
    state = vector(path)
    with simulated(state) as (_, _, connection):
        read = read_snapshot(connection, statistics=True)
    assert shown(read) == shown(state)
    assert all(host.measured for host in read.hosts)


def test_what_a_scheduling_policy_enables_comes_back() -> None:
    external = SchedulingPolicy(
        filters=("AffinityFilter", "HostAffinityFilter"),
        weights={"SoftAffinityWeight": 7},
        balance="HaReservationBalance",
    )
    state = builders.snapshot(
        builders.cluster("one", policy={"vm_affinity_weight": 3}, scheduling_policy=external),
        builders.cluster("two"),
    )
    with simulated(state) as (_, _, connection):
        one, two = read_snapshot(connection).clusters
    assert one.scheduling_policy is not None
    assert replace(one.scheduling_policy, engine_filters=(), unit_ids={}) == external
    assert "VmAffinityGroups" in one.scheduling_policy.engine_filters
    assert one.scheduling_policy.unit_ids.keys() >= {"SoftAffinityWeight", "vm_affinity_weight"}
    assert (one.policy["vm_affinity_weight"], one.policy["vm_to_host_weight"]) == (3, 20)
    assert two.scheduling_policy is not None  # it is known to enable none
    assert replace(two.scheduling_policy, engine_filters=(), unit_ids={}) == SchedulingPolicy()
    assert two.policy["vm_affinity_weight"] == 1


@pytest.fixture(params=[0, 1, 99, 100, 101, 203])
def connection(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[EngineConnection]:
    """An engine with this many VMs, and pages of a hundred."""
    monkeypatch.setattr("ovirt_placement.engine.topology.MEASURED", 100)
    vms = (builders.vm(f"vm{number:04}", "h") for number in range(request.param))
    state = builders.snapshot(builders.host("h", free_mb=1 << 29, memory_mb=1 << 30), *vms)
    with simulated(state) as (_, _, connection):
        yield connection


def test_all_are_measured_whatever_their_number(connection: EngineConnection) -> None:
    at_once = read_snapshot(connection, statistics=True)
    found = read_statistics(connection, frozenset({HOST_STATISTICS, VM_STATISTICS}))
    assert found.vms == {vm.id: VmStatistics.of(vm) for vm in at_once.vms}
    assert found.over(read_snapshot(connection)).hosts == at_once.hosts
