"""The engine's filter CPU: no VM runs on a host that has fewer cores than the VM has, however idle.

Nor does any other VM come to a host where one runs, or is on its way to, that has more than the host. Of all
of them the largest counts, not their sum. CPUs that other VMs are pinned to alone are not part of the state,
and are not deducted.

Source: CPUPolicyUnit, which leaves the threads of a VM's cores out.
"""

from __future__ import annotations

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules.cpus import cores_of, running_vms
from ovirt_placement.rules.locations import vms_coming_to
from ovirt_placement.rules.reasons import Reason, ReasonKind
from ovirt_placement.rules.rule import Rule, Scope, UnitKind
from ovirt_placement.rules.verdict import Request, Verdict

TOO_FEW_CORES = ReasonKind("too_few_cores", "has {number:g} cores, fewer than VM {vm} has CPUs", veto=True)
LARGER_VM_HERE = ReasonKind(
    "larger_vm_here", "has {number:g} cores, fewer than VM {vm}, which is there already, has CPUs", veto=True
)


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts with fewer cores than any of the requested VMs has, or any VM there."""
    vms = [snapshot.vm_by_id[vm] for vm in request.vms if vm in snapshot.vm_by_id]
    largest = max(map(_cores, vms), default=0)

    def reasons(host_id: str) -> tuple[Reason, ...]:
        host = snapshot.host_by_id.get(host_id)
        if host is None or not vms:
            return ()
        cores = cores_of(host, snapshot.cluster_by_id[host.cluster])
        if largest > cores:
            vm = max(vms, key=_cores)
            return (Reason(TOO_FEW_CORES, vm=vm.id, host=host_id, number=cores),)
        larger = _larger_vm(snapshot, host, cores)
        return () if larger is None else (Reason(LARGER_VM_HERE, vm=larger.id, host=host_id, number=cores),)

    return tuple(Verdict.of(host, reasons(host)) for host in request.candidate_hosts)


def _cores(vm: Vm) -> int:
    return vm.vcpus // vm.threads_per_core


def _alike(snapshot: Snapshot, vm: str) -> int | None:
    return _cores(snapshot.vm_by_id[vm]) if vm in snapshot.vm_by_id else None


def _nobody_too_large(snapshot: Snapshot, cluster: str) -> bool:
    """Whether all VMs of a cluster are on hosts that they fit on: no other VM will come to one then.

    Where one is too large, its host is closed until it leaves.
    """
    return all(
        _larger_vm(snapshot, host, cores_of(host, snapshot.cluster_by_id[cluster])) is None
        for host in snapshot.hosts_of_cluster.get(cluster, ())
    )


def _larger_vm(snapshot: Snapshot, host: Host, cores: int) -> Vm | None:
    there = (*running_vms(snapshot, host.id), *vms_coming_to(snapshot).get(host.id, ()))
    return next((vm for vm in there if _cores(vm) > cores), None)


RULE = Rule(
    name="CPU",
    kind=UnitKind.FILTER,
    ours=False,
    fixed=True,
    fixed_while=_nobody_too_large,
    alike=_alike,
    scope=Scope.HOST_AT_ONCE,
    only_narrows=lambda snapshot, vm, others: True,
    filter=filter_hosts,
)
