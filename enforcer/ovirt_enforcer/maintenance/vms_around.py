"""VMs and hosts that the next step of a maintenance waits for, by what is read of the engine and intended."""

from __future__ import annotations

from collections.abc import Sequence

from ovirt_placement.model import Snapshot
from ovirt_placement.store.intents import Intent
from ovirt_placement.store.maintenance_run import HostPhase, MaintenanceRun


def arriving(snapshot: Snapshot, open_intents: Sequence[Intent], host: str) -> dict[str, str]:
    """The VMs on their way to a host, with their names."""
    coming = {one.vm for one in snapshot.pending if one.host == host}
    coming.update(intent.vm for intent in open_intents if intent.target == host)
    return {vm: snapshot.vm_by_id[vm].name for vm in coming if vm in snapshot.vm_by_id}


def leaving(snapshot: Snapshot, open_intents: Sequence[Intent], host: str) -> dict[str, str]:
    """The VMs that may be back, as long as it is not known that they have arrived."""
    going = (intent.vm for intent in open_intents if intent.source == host)
    return {vm: snapshot.vm_by_id[vm].name for vm in going if vm in snapshot.vm_by_id}


def down(snapshot: Snapshot, stopped: Sequence[str]) -> dict[str, str]:
    """Those of these VMs that are down, with their names."""
    known = (snapshot.vm_by_id[vm] for vm in stopped if vm in snapshot.vm_by_id)
    return {vm.id: vm.name for vm in known if vm.status == "down"}


def lost(run: MaintenanceRun, snapshot: Snapshot) -> tuple[str, ...]:
    """The names of hosts of a run that are done, and not up."""
    done = [host for host in run.hosts if host.phase is HostPhase.DONE]
    up = {host.id for host in snapshot.hosts if host.up}
    return tuple(host.name for host in done if host.host in snapshot.host_by_id and host.host not in up)
