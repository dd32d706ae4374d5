"""The engine's filters PinToHost and CPU-Level: what binds a VM to hosts, or to CPUs like that of its host.

Since 2026-07 CPU-Level takes a host for a running VM with its host's own CPU if the host's has all the flags
that the VM started with; equal ones before. The API shows no flags, so nothing is refused for them.

Source: CpuLevelFilterPolicyUnit.
"""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.reasons import Reason, ReasonKind
from ovirt_placement.rules.rule import Rule, Scope, UnitKind
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


FLAGS_NOT_READ = ReasonKind(
    "cpu_flags_not_read",
    "VM {vm} has the CPU of its host: the engine takes this one only if its CPU has all flags that the VM"
    " started with, which are not read; from a newer CPU it does not come back",
)


def note_flags(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Say of each other host what is not known of a VM that runs with its host's own CPU."""
    known = (snapshot.vm_by_id[vm] for vm in request.vms if vm in snapshot.vm_by_id)
    moving = [vm for vm in known if vm.host_passthrough and vm.host is not None]

    def notes(host: str) -> tuple[Reason, ...]:
        return tuple(Reason(FLAGS_NOT_READ, vm=vm.id, host=host) for vm in moving if vm.host != host)

    return tuple(Verdict.of(host, notes(host)) for host in request.candidate_hosts)


LEVEL_RULE = Rule(
    name="CPU-Level",
    kind=UnitKind.FILTER,
    ours=False,
    fixed=True,
    alike=lambda snapshot, vm: None,
    scope=Scope.HOST_AT_ONCE,
    only_narrows=lambda snapshot, vm, others: True,
    filter=note_flags,
)
