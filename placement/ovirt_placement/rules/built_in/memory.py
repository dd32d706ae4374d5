"""The engine's filter Memory: a host must have as much left to hand out as the VMs need."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.locations import occupied
from ovirt_placement.rules.reasons import Reason, ReasonKind
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_placement.rules.verdict import Request, Verdict

MEMORY_HANDED_OUT = ReasonKind(
    "memory_handed_out", "only {number:g} MiB of its memory are not handed out yet", veto=True
)


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Judge by memory, in MiB: that of all requested VMs which are not on the host yet must fit at once."""
    vms = [snapshot.vm_by_id[vm] for vm in request.vms if vm in snapshot.vm_by_id]

    def reasons(host_id: str) -> tuple[Reason, ...]:
        host = snapshot.host_by_id.get(host_id)
        needed = sum(vm.memory_mb for vm in vms if host_id not in occupied(snapshot, vm.id))
        if host is None or needed <= host.free_mb:
            return ()
        return (Reason(MEMORY_HANDED_OUT, host=host_id, number=host.free_mb),)

    return tuple(Verdict.of(host, reasons(host)) for host in request.candidate_hosts)


RULE = Rule(name="Memory", kind=UnitKind.FILTER, ours=False, filter=filter_hosts)
