"""The engine's filter Memory: a host must have as much left as the VMs need, and as QEMU needs for them."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.model.snapshot import HOST_STATISTICS
from ovirt_placement.rules.locations import occupied
from ovirt_placement.rules.memory import lack
from ovirt_placement.rules.reasons import NOT_KNOWN_YET, Reason, ReasonKind, unread
from ovirt_placement.rules.rule import Rule, Scope, UnitKind
from ovirt_placement.rules.verdict import Request, Verdict

MEMORY_HANDED_OUT = ReasonKind(
    "memory_handed_out", "only {number:g} MiB of its memory are not handed out yet", veto=True
)
MEMORY_AND_SWAP_IN_USE = ReasonKind(
    "memory_and_swap_in_use", "only {number:g} MiB of its memory and swap are physically free", veto=True
)


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Judge by memory, in MiB: that of all requested VMs which are not on the host yet must fit at once.

    A paused VM needs nothing, wherever it goes: the engine exempts it.

    Source: MemoryPolicyUnit.
    """
    vms = [snapshot.vm_by_id[vm] for vm in request.vms if vm in snapshot.vm_by_id]
    asking = [vm for vm in vms if vm.status != "paused"]

    late = tuple(Reason(NOT_KNOWN_YET, status=why) for why in unread(snapshot, HOST_STATISTICS))

    def reasons(host_id: str) -> tuple[Reason, ...]:
        host = snapshot.host_by_id.get(host_id)
        coming = [vm for vm in asking if host_id not in occupied(snapshot, vm.id)]
        lacking = lack(snapshot, host, coming) if host is not None and coming else None
        if lacking is None:
            return late if coming else ()
        kind = MEMORY_AND_SWAP_IN_USE if lacking.physical else MEMORY_HANDED_OUT
        return (Reason(kind, host=host_id, number=lacking.free_mb),)

    return tuple(Verdict.of(host, reasons(host)) for host in request.candidate_hosts)


RULE = Rule(
    name="Memory",
    kind=UnitKind.FILTER,
    ours=False,
    scope=Scope.HOST_AT_ONCE,
    computed=True,
    amounts=True,
    only_narrows=lambda snapshot, vm, others: True,
    filter=filter_hosts,
)
