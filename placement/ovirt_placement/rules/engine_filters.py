"""The engine's own filters of what a host is and has: its status, memory, CPUs, and what binds a VM to it.

CPU and CpuPinning: no VM runs on a host that has fewer cores than the VM has, however idle. Nor does any
other VM come to a host where one runs, or is on its way to, that has more than the host. Of all that share
CPUs the largest counts, not their sum; those that have CPUs of their own (dedicated, isolate_threads) take
these off, since 4.5.1.

CPUOverloaded: the engine remembers since when a host has been busy and does not show it. So a host that is
too busy now is refused here, though the engine may still accept it for as long as the policy says. A host
that was measured and has no CPU statistics is refused at once, as by the engine; of one that was not measured
nothing is said. VMs on their way add nothing.

CPU-Level: since 2026-07 the engine takes a host for a running VM with its host's own CPU if the host's has
all the flags that the VM started with; equal ones before. The API shows no flags, so nothing is refused.

Source: MemoryPolicyUnit; CPUPolicyUnit, which leaves the threads of a VM's cores out; CpuPinningPolicyUnit;
CpuOverloadPolicyUnit, HostCpuLoadHelper; CpuLevelFilterPolicyUnit.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace

from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.snapshot import HOST_STATISTICS
from ovirt_placement.rules.elements.placement import occupied
from ovirt_placement.rules.elements.resources import (
    RESIZED,
    any_exclusive,
    cores_of,
    given_away,
    huge_page_kib,
    is_exclusive,
    lack,
    running_vms,
    shared_load,
    vms_coming_to,
)
from ovirt_placement.rules.elements.rule import Dependence, Filter, Rule, Scope, UnitKind
from ovirt_placement.rules.elements.verdict import (
    NOT_KNOWN_YET,
    Reason,
    ReasonKind,
    Request,
    Verdict,
    judge_known,
    unread,
    whole_number,
)

HOST_NOT_UP = ReasonKind("host_not_up", "is not up", veto=True)
MEMORY_HANDED_OUT = ReasonKind(
    "memory_handed_out", "only {number:g} MiB of its memory are not handed out yet", veto=True, memory=True
)
MEMORY_AND_SWAP_IN_USE = ReasonKind(
    "memory_and_swap_in_use",
    "only {number:g} MiB of its memory and swap are physically free",
    veto=True,
    memory=True,
)
TOO_FEW_CORES = ReasonKind("too_few_cores", "has fewer cores, {number:g}, than VM {vm} has CPUs", veto=True)
LARGER_VM_HERE = ReasonKind(
    "larger_vm_here", "has fewer cores, {number:g}, than VM {vm}, which is there already, has CPUs", veto=True
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
CPU_OVERLOADED = ReasonKind(
    "cpu_overloaded",
    "its CPU is too loaded: {number:g} % are in use, which the engine refuses once it has lasted",
    veto=True,
)
NO_CPU_STATISTICS = ReasonKind("no_cpu_statistics", "the engine has no statistics of its CPU", veto=True)
PINNED_ELSEWHERE = ReasonKind(
    "pinned_elsewhere", "VM {vm} cannot be migrated and is pinned to other hosts", veto=True
)
FLAGS_NOT_READ = ReasonKind(
    "cpu_flags_not_read",
    "VM {vm} has the CPU of its host: the engine takes this one only if its CPU has all flags that the VM"
    " started with, which are not read; from a newer CPU it does not come back",
)


def filter_by_status(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts that are not up."""
    return judge_known(
        snapshot, request, lambda host: () if host.up else (Reason(HOST_NOT_UP, host=host.id),)
    )


def filter_by_memory(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Judge by memory, in MiB: that of all requested VMs which are not on the host yet must fit at once.

    A paused VM needs nothing, wherever it goes: the engine exempts it.
    """
    vms = request.known_vms(snapshot)
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

    return tuple(Verdict.of_reasons(host, reasons(host)) for host in request.candidate_hosts)


def filter_by_cpus(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts with fewer CPUs to share than any of the requested VMs has, or any VM there."""
    vms = request.known_vms(snapshot)
    return judge_known(snapshot, request, lambda host: _reasons(snapshot, host, vms) if vms else ())


def _reasons(snapshot: Snapshot, host: Host, vms: Sequence[Vm]) -> Iterator[Reason]:
    cluster = snapshot.cluster_by_id[host.cluster]
    cores, own = cores_of(host, cluster), 0
    if any_exclusive(snapshot, host.cluster) or any(map(is_exclusive, vms)):
        cpus = given_away(snapshot, host, vms)
        if cpus is None:
            yield Reason(NO_CPUS_OF_ITS_OWN, vm=next(vm.id for vm in vms if is_exclusive(vm)), host=host.id)
            return
        own = cpus.dedicated_cpus(threads=cluster.count_threads_as_cores)
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
    vms = request.known_vms(snapshot)
    resized = next((vm.id for vm in vms if vm.cpu_pinning == RESIZED), None)
    exclusive = next((vm.id for vm in vms if is_exclusive(vm)), None)

    def reasons(host: Host) -> Iterator[Reason]:
        if resized is None and exclusive is None:
            return
        cpus = given_away(snapshot, host, vms)
        if cpus is None:
            yield Reason(NO_CPUS_OF_ITS_OWN, vm=exclusive, host=host.id)
        elif resized is not None and cpus.dedicated_cpus(threads=True):
            yield Reason(OTHERS_OWN_CPUS, vm=resized, host=host.id)

    return judge_known(snapshot, request, reasons)


def _cores(vm: Vm) -> int:
    return vm.vcpus // vm.threads_per_core


def _alike(snapshot: Snapshot, vm: str) -> Hashable:
    known = snapshot.vm_by_id.get(vm)
    return None if known is None else (_cores(known), known.cpu_pinning, known.cpu_sockets, known.vcpus)


def _scope(snapshot: Snapshot, cluster: str) -> Scope:
    return Scope.HOST if any_exclusive(snapshot, cluster) else Scope.HOST_AT_ONCE


def _memory_scope(snapshot: Snapshot, cluster: str) -> Scope:
    """A start takes of huge pages that are ready and of memory to hand out: each counts in its turn."""
    ready = any(host.free_huge_pages for host in snapshot.hosts_of_cluster.get(cluster, ()))
    paged = ready and any(huge_page_kib(vm) for vm in snapshot.vms if vm.cluster == cluster)
    return Scope.HOST if paged else Scope.HOST_AT_ONCE


def _none_too_large(snapshot: Snapshot, cluster: str) -> bool:
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


#: The parameter for the percent above which a host is overloaded, and HighUtilizationForScheduling.
_LIMIT, _USUAL_LIMIT = "HighUtilization", 90


def filter_by_cpu_load(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts that use more percent of their CPUs than the policy's `HighUtilization`."""
    late = tuple(Reason(NOT_KNOWN_YET, status=why) for why in unread(snapshot, HOST_STATISTICS))
    limit = whole_number(request.parameters, _LIMIT, _USUAL_LIMIT)

    def reasons(host_id: str) -> tuple[Reason, ...]:
        host = snapshot.host_by_id.get(host_id)
        if host is None or (host.cpu_percent is None and not host.measured):
            return late
        if host.cpu_percent is None:
            return (Reason(NO_CPU_STATISTICS, host=host_id),)
        load = shared_load(host, threads=snapshot.cluster_by_id[host.cluster].count_threads_as_cores)
        return (Reason(CPU_OVERLOADED, host=host_id, number=load),) if load > limit else ()

    return tuple(Verdict.of_reasons(host, reasons(host)) for host in request.candidate_hosts)


def filter_by_pins(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts that a requested VM is not bound to."""
    vms = request.known_vms(snapshot)
    bound = [(vm.id, hosts) for vm in vms if (hosts := vm.bound_to) is not None]

    def reasons(host: Host) -> Iterator[Reason]:
        return (Reason(PINNED_ELSEWHERE, vm=vm) for vm, hosts in bound if host.id not in hosts)

    return judge_known(snapshot, request, reasons)


def note_flags(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Say of each other host what is not known of a VM that runs with its host's own CPU."""
    moving = [vm for vm in request.known_vms(snapshot) if vm.host_passthrough and vm.host is not None]

    def notes(host: str) -> tuple[Reason, ...]:
        return tuple(Reason(FLAGS_NOT_READ, vm=vm.id, host=host) for vm in moving if vm.host != host)

    return tuple(Verdict.of_reasons(host, notes(host)) for host in request.candidate_hosts)


def _bound_to(snapshot: Snapshot, vm: str) -> frozenset[str] | None:
    return snapshot.vm_by_id[vm].bound_to if vm in snapshot.vm_by_id else None


def _whatever_starts(snapshot: Snapshot, vm: str, others: frozenset[str]) -> bool:
    return True


_HOST_ALONE = Dependence(fixed=True, alike=lambda snapshot, vm: None)


def engines_filter(name: str, judge: Filter, depends_on: Dependence) -> Rule:
    """A filter of the engine that we know of: it is no unit of ours."""
    return Rule(name=name, kind=UnitKind.FILTER, ours=False, filter=judge, depends_on=depends_on)


STATUS_FILTER = engines_filter("Status", filter_by_status, _HOST_ALONE)
MEMORY_FILTER = engines_filter(
    "Memory", filter_by_memory, Dependence(scope=_memory_scope, computed=True, only_narrows=_whatever_starts)
)
CPU_FILTER = engines_filter(
    "CPU",
    filter_by_cpus,
    Dependence(fixed=_none_too_large, alike=_alike, scope=_scope, only_narrows=_whatever_starts),
)
CPU_PINNING_FILTER = engines_filter(
    "CpuPinning",
    filter_by_pinning,
    Dependence(
        fixed=lambda snapshot, cluster: not any_exclusive(snapshot, cluster),
        alike=_alike,
        scope=_scope,
        only_narrows=_whatever_starts,
    ),
)
CPU_OVERLOADED_FILTER = replace(
    engines_filter("CPUOverloaded", filter_by_cpu_load, _HOST_ALONE),
    on_request=True,
    reads=frozenset((HOST_STATISTICS,)),
)
PIN_TO_HOST_FILTER = engines_filter("PinToHost", filter_by_pins, Dependence(fixed=True, alike=_bound_to))
CPU_LEVEL_FILTER = engines_filter("CPU-Level", note_flags, _HOST_ALONE)
