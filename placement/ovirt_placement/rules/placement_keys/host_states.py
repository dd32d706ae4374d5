"""Reads from a snapshot what the steps need to know of each host."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from ovirt_placement.model import Cluster, Host, Snapshot
from ovirt_placement.rules.index import once_per_snapshot
from ovirt_placement.rules.locations import occupied
from ovirt_placement.rules.placement_keys.capacity import Capacity
from ovirt_placement.rules.placement_keys.decision import HostState
from ovirt_placement.rules.placement_keys.exact import number
from ovirt_placement.rules.placement_keys.hierarchy import keys_by_resource
from ovirt_placement.rules.placement_keys.levels import NODE
from ovirt_placement.rules.placement_keys.node_keys import node_keys
from ovirt_placement.rules.placement_keys.presence import Presence, presences
from ovirt_placement.rules.placement_keys.settings import Settings


def host_states(
    snapshot: Snapshot, hosts: Iterable[Host], settings: Settings, vm: str | None = None
) -> tuple[HostState, ...]:
    """Hosts without the VM that is to be placed. Those that it is not on are read once a snapshot."""
    known = _known_states(snapshot).setdefault(settings, {})

    present = presences(snapshot)
    held = occupied(snapshot, vm) if vm is not None else ()

    def state(host: Host) -> HostState:
        if host.id in held:
            return _read(snapshot, host, settings, present.get(host.id, ()), vm)
        if host.id not in known:
            known[host.id] = _read(snapshot, host, settings, present.get(host.id, ()))
        return known[host.id]

    return tuple(state(host) for host in hosts)


@once_per_snapshot
def _known_states(snapshot: Snapshot) -> dict[Settings, dict[str, HostState]]:
    """What has been read of this snapshot, by host id: every VM that is placed asks for the same hosts."""
    return {}


def _read(
    snapshot: Snapshot, host: Host, settings: Settings, there: tuple[Presence, ...], vm: str | None = None
) -> HostState:
    others = tuple(presence for presence in there if presence.vm != vm)
    own = tuple(presence for presence in there if presence.vm == vm)
    capacity = _capacity(host, snapshot.cluster_by_id[host.cluster], settings, others, own)
    keys = node_keys(
        keys_by_resource(snapshot).get((NODE, host.id), ()),
        capacity,
        (presence.frozen for presence in others),
        reserved_from_vms=settings.reserved_from_vms,
    )
    return HostState(host.id, capacity, keys)


def _capacity(
    host: Host,
    cluster: Cluster,
    settings: Settings,
    others: tuple[Presence, ...],
    own: tuple[Presence, ...],
) -> Capacity:
    """What others have here is handed out; what the VM to be placed holds here counts as free.

    Where it is not known how much memory is physically free, the engine's own account must do: it has
    the overhead and what is promised taken off already.
    """
    measured = host.memory_free_mb is not None
    free_mb = host.free_mb if host.memory_free_mb is None else host.memory_free_mb
    load = None if host.cpu_percent is None else number(host.cpu_percent)
    return Capacity(
        up=host.up,
        memory_mb=host.memory_mb,
        memory_ratio=settings.memory_ratio or Fraction(cluster.memory_overcommit_percent, 100),
        cpu_ratio=settings.cpu_ratio or Fraction(cluster.cpu_overcommit_percent, 100),
        allocated_mb=sum(presence.memory_mb for presence in others),
        allocated_vcpus=sum(presence.vcpus for presence in others),
        cpus=(host.threads or host.cores) if cluster.count_threads_as_cores else host.cores,
        free_mb=free_mb + sum(held.memory_mb for held in own if not (measured and held.arriving)),
        free_without_overhead=not measured,
        load=None if load is None else load / 100,
    )
