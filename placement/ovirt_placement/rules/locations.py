"""Where a VM counts for its peers: where it runs, where it is about to, or both."""

from __future__ import annotations

from ovirt_placement.lookups.index import once_per_snapshot
from ovirt_placement.model import Snapshot, Vm


def destinations(snapshot: Snapshot, vm: str) -> tuple[str, ...]:
    """Hosts that a VM is to be found on: its target when it is on its way, else the host it runs on."""
    return snapshot.pending_hosts.get(vm) or _present(snapshot, vm)


def occupied(snapshot: Snapshot, vm: str) -> tuple[str, ...]:
    """Hosts that a VM holds: a migrating one holds both ends until it has left (docs/rules.md, F4)."""
    targets = snapshot.pending_hosts.get(vm)
    present = _present(snapshot, vm)
    return tuple(dict.fromkeys((*targets, *present))) if targets else present


def target_unknown(snapshot: Snapshot, vm: str) -> bool:
    """Whether a VM migrates to a host that nobody knows: the REST API does not show it."""
    return vm not in snapshot.pending_hosts and snapshot.vm_by_id[vm].status == "migrating"


@once_per_snapshot
def vms_coming_to(snapshot: Snapshot) -> dict[str, tuple[Vm, ...]]:
    """The VMs that are on their way to a host, by the host."""
    found: dict[str, tuple[Vm, ...]] = {}
    for name, hosts in snapshot.pending_hosts.items():
        for host in hosts if name in snapshot.vm_by_id else ():
            found[host] = (*found.get(host, ()), snapshot.vm_by_id[name])
    return found


def _present(snapshot: Snapshot, vm: str) -> tuple[str, ...]:
    known = snapshot.vm_by_id.get(vm)
    return (known.host,) if known is not None and known.host is not None else ()
