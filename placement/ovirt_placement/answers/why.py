"""Which hosts may take a VM, and by which rule, group and VM the others may not."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.keys.scores import HostKeys, host_keys
from ovirt_placement.answers.restart_order import Restart, restart_of
from ovirt_placement.answers.sentences import Said, listed, said
from ovirt_placement.model import Cluster, Host, Snapshot, Vm
from ovirt_placement.model.names import Named, named_cluster, named_host, named_vm
from ovirt_placement.model.record import Record
from ovirt_placement.rules.listed import LISTED, NO_UNITS, those_in_force
from ovirt_placement.rules.rule import UnitKind
from ovirt_placement.rules.scheduling.judging import HostJudgement, judge


class JudgedHost(Record, frozen=True, omit_defaults=False):
    """What all filters together say of one host."""

    host: Named
    accepted: bool
    #: What keeps the VM off the host, and notes, which change nothing.
    reasons: tuple[Said, ...]
    placement_keys: HostKeys | None


class NotAsked(Record, frozen=True, omit_defaults=False):
    """A filter that the engine does not ask, and the hosts that it refuses."""

    unit: str
    hosts: tuple[Named, ...]


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
    #: What refuses hosts that nothing else refuses, though the engine does not ask for it: filters of ours
    #: that the scheduling policy of the cluster does not have, as far as that is known.
    not_asked: tuple[NotAsked, ...]
    #: When it restarts if its host fails; null if it is not highly available.
    restart: Restart | None


def why(snapshot: Snapshot, vm: Vm, hosts: Sequence[Host], also: Collection[str] = NO_UNITS) -> WhyDocument:
    """What all filters that count in the VM's cluster, and those named in `also`, say of each host."""
    judged = judge(snapshot, vm, hosts, also)
    answers = tuple(judged_host(host, snapshot) for host in judged.hosts)
    return WhyDocument(
        vm=Named(vm.id, vm.name),
        cluster=named_cluster(vm.cluster, snapshot),
        host=None if vm.host is None else named_host(vm.host, snapshot),
        moves_with=tuple(named_vm(peer, snapshot) for peer in judged.moves_with),
        hosts=answers,
        notes=tuple(said(note, snapshot, rules) for note, rules in judged.everywhere),
        not_asked=_not_asked(answers, snapshot.cluster_by_id[vm.cluster]),
        restart=restart_of(snapshot, vm),
    )


def judged_host(found: HostJudgement, snapshot: Snapshot) -> JudgedHost:
    return JudgedHost(
        host=named_host(found.host, snapshot),
        accepted=found.accepted,
        reasons=tuple(said(reason, snapshot, rules) for reason, rules in found.reasons),
        placement_keys=None if found.keys is None else host_keys(found.keys),
    )


def not_asked_text(one: NotAsked, cluster: str) -> str:
    """That the engine may place the VM there all the same."""
    return (
        f"The engine does not ask {one.unit}, which the scheduling policy of cluster {cluster} does not "
        f"have: it may place the VM on {listed([host.name for host in one.hosts])} (ovirt-placement setup)"
    )


def _not_asked(hosts: Sequence[JudgedHost], cluster: Cluster) -> tuple[NotAsked, ...]:
    if cluster.scheduling_policy is None:
        return ()
    absent = [
        rule.name
        for rule in those_in_force(LISTED, cluster, UnitKind.FILTER)
        if rule.ours and not rule.enabled_in(cluster)
    ]
    refused = {
        host.host: {unit.name for reason in host.reasons if reason.veto for unit in reason.by}
        for host in hosts
        if not host.accepted
    }
    alone = {host: by for host, by in refused.items() if by.issubset(absent)}
    found = (NotAsked(unit, tuple(host for host, by in alone.items() if unit in by)) for unit in absent)
    return tuple(one for one in found if one.hosts)
