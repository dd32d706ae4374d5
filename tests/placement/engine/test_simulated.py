"""Reader and actions against a simulated engine: what a state file says comes back through the REST API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.reading.events import DONE, STARTED, find_migration_events
from ovirt_placement.engine.reading.topology import read_snapshot
from ovirt_placement.engine.writing import migration
from ovirt_placement.engine.writing.migration import Progress
from ovirt_placement.model import AffinityRule, Disk, Network, Nic, SchedulingPolicy, Snapshot, VnicProfile
from ovirt_placement.model.files import state_file
from ovirt_simulator.core.engine import Engine
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


def test_devices_and_what_they_refer_to_come_back() -> None:
    bare = builders.snapshot(
        builders.host("h", tags=("ssd",)),
        builders.vm(
            "v",
            "h",
            tags=("gold",),
            custom_properties={"k": "<v>"},
            template="t",
            instance_type="small",
            quota="q",
            cpu_profile="p",
            disks=(Disk(id="d", bootable=True, profile="fast"), Disk(id="e", bootable=False)),
            nics=(Nic(id="n", name="nic1", vnic_profile="vp"),),
        ),
    )
    state = replace(
        bare,
        networks=(Network(id="net", name="net"),),
        vnic_profiles=(VnicProfile(id="vp", name="vp", network="net"),),
    )
    with simulated(state) as (_, _, connection):
        found = read_snapshot(connection, statistics=True, devices=True)
    assert shown(found).vms == shown(state).vms
    assert found.vms[0].running_since is not None
    assert found.hosts[0].tags == ("ssd",)
    assert (found.networks, found.vnic_profiles) == (state.networks, state.vnic_profiles)


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


@pytest.fixture
def pair() -> Iterator[tuple[Engine, EngineConnection]]:
    """Two hosts, and a VM on the first."""
    state = builders.snapshot(builders.host("h1"), builders.host("h2"), builders.vm("v", "h1"))
    with simulated(state) as (engine, _, connection):
        yield engine, connection


def followed(engine: Engine, connection: EngineConnection) -> list[Progress]:
    """Watch the migration from `h1` to `h2`, second by simulated second, until it ends."""
    watch = migration.Watch("h1", "h2", accepted_at=0.0)
    seen = []
    for second in range(1, 600):
        engine.advance(1.0)
        watch = watch.step(migration.read_vm(connection, "v"), float(second))
        seen.append(watch.progress)
        if watch.ended:
            return seen
    raise AssertionError("the migration never ended")


def test_a_migration_is_accepted_watched_to_its_end_and_found_again(
    pair: tuple[Engine, EngineConnection],
) -> None:
    engine, connection = pair
    migration.migrate(connection, "v", "h2", "repair-1")
    progress = followed(engine, connection)
    assert (progress[0], progress[-1]) == (Progress.UNDER_WAY, Progress.ARRIVED)
    events = find_migration_events(connection, correlation_id="repair-1")
    assert [event.code in STARTED for event in events] == [True, False]
    assert events[-1].code in DONE
    assert {event.vm for event in events} == {"v"}
    assert find_migration_events(connection, correlation_id="repair-2") == ()
    assert read_snapshot(connection).vms[0].host == "h2"


def test_a_second_migration_of_a_moving_vm_conflicts(pair: tuple[Engine, EngineConnection]) -> None:
    _, connection = pair
    migration.migrate(connection, "v", "h2", "repair-1")
    with pytest.raises(migration.Conflict):
        migration.migrate(connection, "v", "h2", "repair-2")


@pytest.mark.parametrize(
    ("vm", "host", "kind"),
    [("v", "h1", migration.Refused), ("v", "h9", migration.Gone), ("w", "h2", migration.Gone)],
)
def test_what_cannot_be_is_refused_by_type(
    pair: tuple[Engine, EngineConnection], vm: str, host: str, kind: type[migration.Rejection]
) -> None:
    with pytest.raises(kind):
        migration.migrate(pair[1], vm, host, "repair-1")
