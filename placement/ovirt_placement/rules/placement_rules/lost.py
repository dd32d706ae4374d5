"""Members on a host that has failed: they make up no failure domain, though they are still shown there.

Until it is known what became of them, limits count them, since they may run still. But a VM that restarts
goes where the others are, or are missing, and those are where hosts have not failed.
"""

from __future__ import annotations

from typing import Final

from ovirt_placement.model import Snapshot

#: Statuses of a host of which nobody can say that its VMs run.
_FAILED: Final = frozenset({"non_responsive", "down", "reboot", "kdumping"})


def without_lost(snapshot: Snapshot, vms: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out those on a failed host; who runs nowhere stays."""
    failed = {host.id for host in snapshot.hosts if host.status in _FAILED}
    if not failed:
        return vms
    return tuple(vm for vm in vms if snapshot.vm_by_id[vm].host not in failed)
