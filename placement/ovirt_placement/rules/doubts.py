"""What is not known yet: until a part of the state that a rule needs has been read, no verdict counts."""

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.elements.memory import uncounted
from ovirt_placement.rules.elements.verdict import unread
from ovirt_placement.rules.placement_rules.in_force import not_known_yet


def doubt(snapshot: Snapshot, cluster: str) -> str:
    """Why no verdict on a cluster counts now, nor anything is planned there, in words; empty if all is known.

    What is not known refuses nothing, and licenses nothing: no start is refused for it, no reservation is
    called safe or lost, and no VM is moved.
    """
    reasons = (uncounted(snapshot, cluster), *unread(snapshot), *not_known_yet(snapshot, cluster))
    return next(filter(None, reasons), "")


def held(snapshot: Snapshot, cluster: str) -> dict[str, str]:
    """All VMs of a cluster with the doubt by which they stay where they are; none without one."""
    why = doubt(snapshot, cluster)
    return {vm.id: why for vm in snapshot.vms if vm.cluster == cluster} if why else {}
