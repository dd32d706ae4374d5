"""Where a VM may run and why not elsewhere, when it restarts, and which rules running VMs violate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from ovirt_placement.answers.document import Document, Said, listed, said
from ovirt_placement.answers.keys.key import HostKeys, host_keys
from ovirt_placement.model import Cluster, Host, Snapshot, Vm
from ovirt_placement.model.names import (
    Named,
    NamedGroup,
    named_cluster,
    named_group,
    named_groups,
    named_host,
    named_vm,
    named_vms,
)
from ovirt_placement.model.record import Record
from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.failover.restart_order import restart_order
from ovirt_placement.rules.listed import LISTED, NO_UNITS, those_in_force
from ovirt_placement.rules.placement_rules.in_force import is_in_force, not_known_yet
from ovirt_placement.rules.placement_rules.members import resolved_rules
from ovirt_placement.rules.placement_rules.restart_after import KIND
from ovirt_placement.rules.placement_rules.restart_order import not_waiting, restart_orders
from ovirt_placement.rules.rule import UnitKind
from ovirt_placement.rules.scheduling.judging import HostJudgement, judge
from ovirt_placement.rules.scheduling.ranking import Ranked, order
from ovirt_placement.rules.violations import Violation, find_violations

# -- When a VM restarts after a failure: by the engine's priority, and by rules that it does not know.


class RestartsAfter(Record, frozen=True, omit_defaults=False):
    """A VM that another one restarts after, and the rule that asks for it."""

    vm: Named
    rule: NamedGroup
    #: Whether the engine waits: it does for VMs of a higher priority alone.
    engine_waits: bool


class Restart(Record, frozen=True, omit_defaults=False):
    """When a highly available VM restarts if its host fails."""

    #: The more, the earlier.
    priority: int
    after: tuple[RestartsAfter, ...]
    #: Where it runs now; null, as all below, if it does not.
    host: Named | None
    #: Its place among the VMs that restart if the host fails; 1 is first. The two differ where nothing says
    #: more.
    earliest: int | None
    latest: int | None
    of: int | None


class PriorityClass(Record, frozen=True, omit_defaults=False):
    """VMs of one priority, in an order in which they may restart."""

    priority: int
    vms: tuple[Named, ...]


class NotWaiting(Record, frozen=True, omit_defaults=False):
    """A rule of the restart order, and the VMs that the engine may restart too early by their priorities."""

    rule: NamedGroup
    vms: tuple[Named, ...]


def restart_of(snapshot: Snapshot, vm: Vm) -> Restart | None:
    """When a VM restarts; None if it is not highly available."""
    if not vm.ha:
        return None
    after = tuple(
        RestartsAfter(
            named_vm(other, snapshot),
            named_group(asked.rule, snapshot),
            snapshot.vm_by_id[other].ha_priority > vm.ha_priority,
        )
        for asked in restart_orders(snapshot).after.get(vm.id, ())
        for other in sorted(asked.vms)
        if snapshot.vm_by_id[other].ha
    )
    if vm.host is None or vm.host not in snapshot.host_by_id:
        return Restart(vm.ha_priority, after, None, None, None, None)
    lost = [one.id for one in snapshot.vms_of_host[vm.host] if one.ha]
    rank = restart_order(snapshot).rank(vm.id, lost)
    host = named_host(vm.host, snapshot)
    return Restart(vm.ha_priority, after, host, rank.earliest, rank.latest, len(lost))


def priority_classes(snapshot: Snapshot, vms: Iterable[str]) -> tuple[PriorityClass, ...]:
    """VMs in the order in which they would restart if all did, the highest priority first."""
    order = restart_order(snapshot)
    classes: dict[int, list[str]] = {}
    for vm in order.ordered(vms):
        classes.setdefault(order.priority(vm), []).append(vm)
    return tuple(PriorityClass(priority, named_vms(some, snapshot)) for priority, some in classes.items())


def not_waited(snapshot: Snapshot, cluster: str) -> Iterator[NotWaiting]:
    """The rules of a cluster that the engine's priorities do not bring about."""
    for found in resolved_rules(snapshot):
        asked = found.cluster == cluster and found.rule.kind == KIND.name and is_in_force(found)
        if asked and (vms := not_waiting(snapshot, found)):
            yield NotWaiting(named_group(found.rule.id, snapshot), named_vms(vms, snapshot))


# -- in words


def restart_text(name: str, restart: Restart) -> str:
    """In a line, when a VM restarts."""
    text = f"restart priority {restart.priority}"
    if restart.host is not None:
        exact = restart.earliest == restart.latest
        place = f"{restart.earliest}" if exact else f"{restart.earliest} to {restart.latest}"
        text += f"; if {restart.host.name} fails, {name} is number {place} of {restart.of} to restart"
    return text


def after_text(name: str, after: RestartsAfter) -> str:
    """In a line, what a VM restarts after, and whether the engine waits for it."""
    waits = (
        "the engine waits for its higher priority"
        if after.engine_waits
        else "the engine does not wait: its priority is not higher"
    )
    return f"{name} is to restart after {after.vm.name} ({after.rule.title}): {waits}"


# -- Which hosts may take a VM, and by which rule, group and VM the others may not.


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


# -- The hosts that may take a VM, from best to worst, with what each weight says.


class UnitRank(Record, frozen=True, omit_defaults=False):
    """What one unit of ours says of a host: rank 0 is best."""

    unit: str
    rank: int
    reasons: tuple[Said, ...]


class RankedHost(Record, frozen=True, omit_defaults=False):
    """An accepted host, and the points that the engine's selector gives it: more is better."""

    host: Named
    points: int
    weights: tuple[UnitRank, ...]
    placement_keys: HostKeys | None


class WhereDocument(Document, frozen=True, kw_only=True, tag="where"):
    """The hosts that may take a VM, from best to worst, and those that may not."""

    vm: Named
    cluster: Named
    #: Where the VM runs now.
    host: Named | None
    hosts: tuple[RankedHost, ...]
    refused: tuple[JudgedHost, ...]


def where(snapshot: Snapshot, vm: Vm, also: Collection[str] = NO_UNITS) -> WhereDocument:
    """The hosts of a VM's cluster in order; the units of placement keys count if named in `also`, too."""
    found = order(snapshot, vm, also)
    return WhereDocument(
        vm=Named(vm.id, vm.name),
        cluster=named_cluster(vm.cluster, snapshot),
        host=None if vm.host is None else named_host(vm.host, snapshot),
        hosts=tuple(_ranked(host, snapshot) for host in found.hosts),
        refused=tuple(judged_host(host, snapshot) for host in found.refused),
    )


def _ranked(one: Ranked, snapshot: Snapshot) -> RankedHost:
    weights = (
        UnitRank(unit, weight.rank, tuple(said(reason, snapshot, [UNITS[unit]]) for reason in weight.reasons))
        for unit, weight in one.weights.items()
    )
    keys = None if one.keys is None else host_keys(one.keys)
    return RankedHost(named_host(one.host, snapshot), one.points, tuple(weights), keys)


# -- Which affinity groups the running VMs violate.


VIOLATION_HEADERS = ("cluster", "rule", "violated", "members")


class VmPlace(Record, frozen=True, omit_defaults=False):
    """A running VM and its host."""

    vm: Named
    host: Named
    host_up: bool


class ViolatedConstraint(Record, frozen=True, omit_defaults=False):
    """A rule that running VMs violate."""

    #: The half of an affinity group that asks for it: `vm_affinity` or `host_affinity`.
    kind: str
    sentence: str
    cluster: Named
    #: What it asks of its VMs: "together", "apart", "on its hosts" or "off its hosts".
    asks: str
    positive: bool
    hard: bool
    priority: float
    #: The affinity groups, or the legacy label, that ask for it together.
    groups: tuple[NamedGroup, ...]
    #: Of them, those that are violated taken alone.
    violated: tuple[NamedGroup, ...]
    #: Every running member.
    locations: tuple[VmPlace, ...]
    #: Members that stand wrong.
    offenders: tuple[Named, ...]


class ViolationsDocument(Document, frozen=True, kw_only=True, tag="violations"):
    """The rules that running VMs violate."""

    clusters: tuple[Named, ...]
    violations: tuple[ViolatedConstraint, ...]
    #: Rules of which it is not known yet whether they are violated, in a sentence each.
    unknown: tuple[str, ...]


def violations(
    snapshot: Snapshot,
    clusters: Iterable[Cluster],
    *,
    vm: str | None = None,
    host: str | None = None,
    group: str | None = None,
) -> ViolationsDocument:
    """The violated rules of these clusters, or of them those with a VM, a host or a group of this id."""
    clusters = tuple(clusters)
    return ViolationsDocument(
        clusters=tuple(Named(cluster.id, cluster.name) for cluster in clusters),
        violations=tuple(
            _violated(violation, cluster.id, snapshot)
            for cluster in clusters
            for violation in find_violations(snapshot, cluster.id)
            if (vm is None or vm in violation.constraint.vms)
            and (host is None or any(at.host == host for at in violation.locations))
            and (group is None or group in violation.groups)
        ),
        unknown=tuple(why for cluster in clusters for why in not_known_yet(snapshot, cluster.id)),
    )


def _violated(violation: Violation, cluster: str, snapshot: Snapshot) -> ViolatedConstraint:
    constraint = violation.constraint
    found = ViolatedConstraint(
        kind=constraint.family,
        sentence="",
        cluster=named_cluster(cluster, snapshot),
        asks=constraint.asks,
        positive=constraint.positive,
        hard=constraint.hard,
        priority=constraint.priority,
        groups=named_groups(constraint.groups, snapshot),
        violated=named_groups(violation.violated, snapshot),
        locations=tuple(
            VmPlace(named_vm(at.vm, snapshot), named_host(at.host, snapshot), at.host_up)
            for at in violation.locations
        ),
        offenders=named_vms(violation.offenders, snapshot),
    )
    return replace(found, sentence=_sentence(found))


# -- in words


def violation_rows(answer: ViolationsDocument) -> list[tuple[str, ...]]:
    """In words: the cluster, what a rule asks, the groups that ask it, where its members are."""
    return [
        (one.cluster.name, _asked(one), "\n".join(_titles(one)), "\n".join(_places(one)))
        for one in answer.violations
    ]


def _sentence(found: ViolatedConstraint) -> str:
    """A violated rule in one line; VMs that stand wrong have a *."""
    return f"{', '.join(_titles(found))} asks for its VMs {_asked(found)}: {', '.join(_places(found))}"


def _asked(found: ViolatedConstraint) -> str:
    return f"{found.asks} ({'hard' if found.hard else f'soft, priority {found.priority:g}'})"


def _titles(found: ViolatedConstraint) -> Iterator[str]:
    return (group.title for group in found.groups)


def _places(found: ViolatedConstraint) -> Iterator[str]:
    """Those that stand wrong come first: of many members, a table shows only some."""
    wrong = {vm.id for vm in found.offenders}
    for at in sorted(found.locations, key=lambda at: at.vm.id not in wrong):
        mark = " *" if at.vm.id in wrong else ""
        yield f"{at.vm.name} on {at.host.name}{'' if at.host_up else ' (not up)'}{mark}"
