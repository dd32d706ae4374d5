"""Which hosts may take a VM, and by which rule, group and VM the others may not."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.keys.scores import HostKeys, host_keys
from ovirt_placement.answers.restart_order import Restart, restart_of
from ovirt_placement.answers.sentences import Said, said
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import Named, named_cluster, named_host, named_vm
from ovirt_placement.model.record import Record
from ovirt_placement.rules.listed import NO_UNITS
from ovirt_placement.rules.scheduling.judging import HostJudgement, judge


class JudgedHost(Record, frozen=True, omit_defaults=False):
    """What all filters together say of one host."""

    host: Named
    accepted: bool
    #: What keeps the VM off the host, and notes, which change nothing.
    reasons: tuple[Said, ...]
    placement_keys: HostKeys | None


class WhyDocument(Document, frozen=True, kw_only=True, tag="why"):
    """Which hosts may take a VM, and why not the others."""

    vm: Named
    cluster: Named
    #: Where the VM runs now.
    host: Named | None
    #: VMs that the engine moves together with it, and that its own filters are asked about, too.
    moves_with: tuple[Named, ...]
    hosts: tuple[JudgedHost, ...]
    #: What is to be said of the VM wherever it runs.
    notes: tuple[Said, ...]
    #: When it restarts if its host fails; null if it is not highly available.
    restart: Restart | None


def why(snapshot: Snapshot, vm: Vm, hosts: Sequence[Host], also: Collection[str] = NO_UNITS) -> WhyDocument:
    """What all filters that count in the VM's cluster, and those named in `also`, say of each host."""
    judged = judge(snapshot, vm, hosts, also)
    return WhyDocument(
        vm=Named(vm.id, vm.name),
        cluster=named_cluster(vm.cluster, snapshot),
        host=None if vm.host is None else named_host(vm.host, snapshot),
        moves_with=tuple(named_vm(peer, snapshot) for peer in judged.moves_with),
        hosts=tuple(judged_host(host, snapshot) for host in judged.hosts),
        notes=tuple(said(note, snapshot, rules) for note, rules in judged.everywhere),
        restart=restart_of(snapshot, vm),
    )


def judged_host(found: HostJudgement, snapshot: Snapshot) -> JudgedHost:
    return JudgedHost(
        host=named_host(found.host, snapshot),
        accepted=found.accepted,
        reasons=tuple(said(reason, snapshot, rules) for reason, rules in found.reasons),
        placement_keys=None if found.keys is None else host_keys(found.keys),
    )
