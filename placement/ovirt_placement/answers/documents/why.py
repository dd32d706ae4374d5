"""The answer of `ovirt-placement why` as data."""

from __future__ import annotations

from ovirt_placement.answers.documents.document import Document
from ovirt_placement.answers.documents.key_scores import HostKeys, host_keys
from ovirt_placement.answers.names import Named, named_cluster, named_host, named_vm
from ovirt_placement.answers.sentences import Said
from ovirt_placement.answers.why import HostAnswer, WhyAnswer
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.rules.record import Record


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


def why_document(answer: WhyAnswer, vm: Vm, snapshot: Snapshot) -> WhyDocument:
    return WhyDocument(
        vm=Named(vm.id, vm.name),
        cluster=named_cluster(vm.cluster, snapshot),
        host=None if vm.host is None else named_host(vm.host, snapshot),
        moves_with=tuple(named_vm(peer, snapshot) for peer in answer.moves_with),
        hosts=tuple(judged_host(host, snapshot) for host in answer.hosts),
        notes=answer.everywhere,
    )


def judged_host(answer: HostAnswer, snapshot: Snapshot) -> JudgedHost:
    keys = None if answer.keys is None else host_keys(answer.keys)
    return JudgedHost(named_host(answer.host, snapshot), answer.accepted, answer.reasons, keys)
