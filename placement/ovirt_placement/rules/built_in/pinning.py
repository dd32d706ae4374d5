"""The engine's filter PinToHost: a VM that cannot be migrated runs only on the hosts that it is pinned to."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.reasons import Reason, ReasonKind
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_placement.rules.verdict import Request, Verdict

PINNED_ELSEWHERE = ReasonKind(
    "pinned_elsewhere", "VM {vm} cannot be migrated and is pinned to other hosts", veto=True
)


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts that a requested VM is not bound to."""
    vms = [snapshot.vm_by_id[vm] for vm in request.vms if vm in snapshot.vm_by_id]
    bound = [(vm.id, hosts) for vm in vms if (hosts := vm.bound_to) is not None]

    def reasons(host: str) -> tuple[Reason, ...]:
        if host not in snapshot.host_by_id:
            return ()
        return tuple(Reason(PINNED_ELSEWHERE, vm=vm) for vm, hosts in bound if host not in hosts)

    return tuple(Verdict.of(host, reasons(host)) for host in request.candidate_hosts)


def _bound_to(snapshot: Snapshot, vm: str) -> frozenset[str] | None:
    return snapshot.vm_by_id[vm].bound_to if vm in snapshot.vm_by_id else None


RULE = Rule(
    name="PinToHost", kind=UnitKind.FILTER, ours=False, fixed=True, alike=_bound_to, filter=filter_hosts
)
