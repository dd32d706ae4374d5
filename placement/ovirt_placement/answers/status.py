"""What is known of each cluster, where from and how fresh it is, and whether its rules hold."""

from __future__ import annotations

from pathlib import Path

from ovirt_placement import inventory
from ovirt_placement.config import Config
from ovirt_placement.inventory.expected.current import outcomes
from ovirt_placement.inventory.expected.traces import Outcomes
from ovirt_placement.inventory.on_demand.details import referred
from ovirt_placement.model import Cluster, Snapshot, Struct, state_file
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement.rules.violations import find_violations


class StateSource(Struct, frozen=True):
    """Where a state comes from; ages in seconds."""

    kind: str
    where: str
    version: int | None = None
    age_seconds: float | None = None
    #: Since all was last read, whatever had changed.
    whole_age_seconds: float | None = None
    statistics_age_seconds: float | None = None
    #: Since the placement keys were those of the store.
    keys_age_seconds: float | None = None
    #: Whether it could be read when it was last asked.
    store_answers: bool | None = None
    #: Since the disks, network interfaces and owners that keys refer to were last read of all VMs.
    details_age_seconds: float | None = None
    #: Of the latest decisions that later ones counted with before the engine showed what came of them.
    expected_hosts: Outcomes | None = None
    #: Why nothing newer is known, or nothing at all.
    error: str | None = None


class Keys(Struct, frozen=True):
    """Placement keys in numbers."""

    #: Those that people set.
    keys: int
    #: VMs with a set of keys that they started with.
    frozen_sets: int
    sticky_copies: int


class ClusterStatus(Record, frozen=True, omit_defaults=False):
    """A cluster in numbers."""

    cluster: Named
    hosts: int
    hosts_up: int
    vms: int
    vms_running: int
    #: Migrating, or chosen for a host a moment ago.
    vms_on_their_way: int
    vms_highly_available: int
    groups: int
    hard_violations: int
    soft_violations: int


class Known(Struct, frozen=True):
    """A state, and where it is from."""

    snapshot: Snapshot
    source: StateSource


def of_file(path: Path) -> Known:
    """What a state file says. Raises `UserError` if it is none."""
    return Known(snapshot=state_file.load(path), source=StateSource(kind="state file", where=str(path)))


def of_nothing(config: Config, error: str) -> Known:
    """What is known where neither the engine nor an inventory says anything."""
    nothing = Snapshot(clusters=(), hosts=(), vms=(), affinity_groups=(), affinity_labels=())
    return Known(
        snapshot=nothing, source=StateSource(kind="nothing", where=config.engine.url or "", error=error)
    )


def of_engine(known: inventory.Known, config: Config, error: str | None = None) -> Known:
    """What the inventory publishes, else the engine says; the error tells why nothing newer is known."""
    snapshot, published = known
    if published is None:
        source = StateSource(kind="engine", where=config.engine.url or "", expected_hosts=outcomes(config))
        return Known(snapshot=snapshot, source=source)
    source = StateSource(
        kind="inventory",
        where=str(config.inventory.directory),
        version=published.version,
        age_seconds=published.engine_age_seconds,
        whole_age_seconds=published.whole_age_seconds,
        statistics_age_seconds=published.statistics_age_seconds,
        keys_age_seconds=published.keys_age_seconds,
        store_answers=published.store_answers,
        details_age_seconds=published.details_age_seconds,
        expected_hosts=outcomes(config),
        error=error,
    )
    return Known(snapshot=snapshot, source=source)


def keys_of(snapshot: Snapshot) -> Keys:
    return Keys(
        keys=len(snapshot.placement_keys),
        frozen_sets=len(snapshot.frozen_keys),
        sticky_copies=len(snapshot.sticky_copies),
    )


def summary(snapshot: Snapshot, cluster: Cluster) -> ClusterStatus:
    hosts = snapshot.hosts_of_cluster.get(cluster.id, ())
    vms = [vm for vm in snapshot.vms if vm.cluster == cluster.id]
    violations = find_violations(snapshot, cluster.id)
    return ClusterStatus(
        cluster=Named(cluster.id, cluster.name),
        hosts=len(hosts),
        hosts_up=sum(host.up for host in hosts),
        vms=len(vms),
        vms_running=sum(vm.host is not None for vm in vms),
        vms_on_their_way=sum(vm.status == "migrating" or vm.id in snapshot.pending_hosts for vm in vms),
        vms_highly_available=sum(vm.ha for vm in vms),
        groups=sum(group.cluster == cluster.id for group in snapshot.affinity_groups),
        hard_violations=sum(violation.hard for violation in violations),
        soft_violations=sum(not violation.hard for violation in violations),
    )


def details_are_lacking(known: Known) -> bool:
    """Whether disks, network interfaces or owners are still to be read that keys refer to."""
    levels = (key.level for key in known.snapshot.placement_keys)
    published = known.source.kind == "inventory" and known.source.details_age_seconds is None
    return published and bool(referred(levels))
