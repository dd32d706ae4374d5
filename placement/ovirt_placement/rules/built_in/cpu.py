"""The engine's filters CPU and CpuPinning: a host has enough CPUs for its largest VM, and for VMs' own.

No VM runs on a host that has fewer cores than the VM has, however idle. Nor does any other VM come to a host
where one runs, or is on its way to, that has more than the host. Of all that share CPUs the largest counts,
not their sum; those that have CPUs of their own (dedicated, isolate_threads) take these off, since 4.5.1.

Source: CPUPolicyUnit, which leaves the threads of a VM's cores out; CpuPinningPolicyUnit.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.rules.cpus import cores_of, running_vms
from ovirt_placement.rules.locations import vms_coming_to
from ovirt_placement.rules.pinned_cpus import RESIZED, any_exclusive, given_away, is_exclusive
from ovirt_placement.rules.reasons import Reason, ReasonKind
from ovirt_placement.rules.rule import Rule, Scope, UnitKind
from ovirt_placement.rules.verdict import Request, Verdict

TOO_FEW_CORES = ReasonKind("too_few_cores", "has {number:g} cores, fewer than VM {vm} has CPUs", veto=True)
LARGER_VM_HERE = ReasonKind(
    "larger_vm_here", "has {number:g} cores, fewer than VM {vm}, which is there already, has CPUs", veto=True
)


TOO_FEW_SHARED_CORES = ReasonKind(
    "too_few_shared_cores", "has {number:g} cores that are no VM's own, and VM {vm} has more CPUs", veto=True
)
NO_CPUS_OF_ITS_OWN = ReasonKind(
    "no_cpus_of_its_own", "has too few free CPUs for VM {vm} to have its own, by its CPU topology", veto=True
)
OTHERS_OWN_CPUS = ReasonKind(
    "others_own_cpus", "VM {vm} takes the CPUs of a whole host, and some are other VMs' own", veto=True
)


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts with fewer CPUs to share than any of the requested VMs has, or any VM there."""
    vms = [snapshot.vm_by_id[vm] for vm in request.vms if vm in snapshot.vm_by_id]

    def reasons(host_id: str) -> tuple[Reason, ...]:
        host = snapshot.host_by_id.get(host_id)
        if host is None or not vms:
            return ()
        return tuple(_reasons(snapshot, host, vms))

    return tuple(Verdict.of(host, reasons(host)) for host in request.candidate_hosts)


def _reasons(snapshot: Snapshot, host: Host, vms: Sequence[Vm]) -> Iterator[Reason]:
    cluster = snapshot.cluster_by_id[host.cluster]
    cores, own = cores_of(host, cluster), 0
    if any_exclusive(snapshot, host.cluster) or any(map(is_exclusive, vms)):
        cpus = given_away(snapshot, host, vms)
        if cpus is None:
            yield Reason(NO_CPUS_OF_ITS_OWN, vm=next(vm.id for vm in vms if is_exclusive(vm)), host=host.id)
            return
        own = cpus.taken(threads=cluster.count_threads_as_cores)
    sharing = [vm for vm in vms if not is_exclusive(vm)]
    largest = max(sharing, key=_cores, default=None)
    if largest is not None and _cores(largest) > cores - own:
        kind = TOO_FEW_SHARED_CORES if own else TOO_FEW_CORES
        yield Reason(kind, vm=largest.id, host=host.id, number=cores - own)
    elif (larger := _larger_vm(snapshot, host, cores - own)) is not None:
        kind = TOO_FEW_SHARED_CORES if own else LARGER_VM_HERE
        yield Reason(kind, vm=larger.id, host=host.id, number=cores - own)
    elif own > cores:
        yield Reason(NO_CPUS_OF_ITS_OWN, vm=vms[0].id, host=host.id)


def filter_by_pinning(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts that cannot give requested VMs CPUs of their own, or that give some away already."""
    vms = [snapshot.vm_by_id[vm] for vm in request.vms if vm in snapshot.vm_by_id]
    resized = next((vm.id for vm in vms if vm.cpu_pinning == RESIZED), None)
    exclusive = next((vm.id for vm in vms if is_exclusive(vm)), None)

    def reasons(host_id: str) -> tuple[Reason, ...]:
        host = snapshot.host_by_id.get(host_id)
        if host is None or (resized is None and exclusive is None):
            return ()
        cpus = given_away(snapshot, host, vms)
        if cpus is None:
            return (Reason(NO_CPUS_OF_ITS_OWN, vm=exclusive, host=host_id),)
        if resized is not None and cpus.taken(threads=True):
            return (Reason(OTHERS_OWN_CPUS, vm=resized, host=host_id),)
        return ()

    return tuple(Verdict.of(host, reasons(host)) for host in request.candidate_hosts)


def _cores(vm: Vm) -> int:
    return vm.vcpus // vm.threads_per_core


def _alike(snapshot: Snapshot, vm: str) -> Hashable:
    known = snapshot.vm_by_id.get(vm)
    return None if known is None else (_cores(known), known.cpu_pinning, known.cpu_sockets, known.vcpus)


def _scope(snapshot: Snapshot, cluster: str) -> Scope:
    return Scope.HOST if any_exclusive(snapshot, cluster) else Scope.HOST_AT_ONCE


def _nobody_exclusive(snapshot: Snapshot, cluster: str) -> bool:
    return not any_exclusive(snapshot, cluster)


def _nobody_too_large(snapshot: Snapshot, cluster: str) -> bool:
    """Whether all VMs of a cluster are on hosts that they fit on: no other VM will come to one then.

    Where one is too large, its host is closed until it leaves; where VMs have CPUs of their own, hosts have
    more or fewer to share as these come and go.
    """
    return not any_exclusive(snapshot, cluster) and all(
        _larger_vm(snapshot, host, cores_of(host, snapshot.cluster_by_id[cluster])) is None
        for host in snapshot.hosts_of_cluster.get(cluster, ())
    )


def _larger_vm(snapshot: Snapshot, host: Host, cores: int) -> Vm | None:
    there = (*running_vms(snapshot, host.id), *vms_coming_to(snapshot).get(host.id, ()))
    return next((vm for vm in there if not is_exclusive(vm) and _cores(vm) > cores), None)


RULE = Rule(
    name="CPU",
    kind=UnitKind.FILTER,
    ours=False,
    fixed=_nobody_too_large,
    alike=_alike,
    scope=_scope,
    only_narrows=lambda snapshot, vm, others: True,
    filter=filter_hosts,
)

PINNING_RULE = Rule(
    name="CpuPinning",
    kind=UnitKind.FILTER,
    ours=False,
    fixed=_nobody_exclusive,
    alike=_alike,
    scope=_scope,
    only_narrows=lambda snapshot, vm, others: True,
    filter=filter_by_pinning,
)
