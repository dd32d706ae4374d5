"""Where a VM may run and why not elsewhere, from best to worst, and when it restarts."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated

from ovirt_placement.answers.document import (
    Document,
    Folded,
    Said,
    Shown,
    Table,
    listed,
    said,
    too_many,
    unit_names,
)
from ovirt_placement.answers.keys import KEY_UNITS, SCORE_HEADERS, HostKeys, score_cells
from ovirt_placement.answers.question import THE_VM, Parameter, Route, question
from ovirt_placement.model import Cluster, Host, Snapshot, Vm
from ovirt_placement.model.names import GroupOrRule, Named, NamedCluster, NamedHost, NamedVm
from ovirt_placement.model.record import Record, with_names
from ovirt_placement.rules.catalogue import UNITS, HostJudgement, decide_by_keys, judge, order
from ovirt_placement.rules.elements.ranks import Scored
from ovirt_placement.rules.elements.rule import UnitKind
from ovirt_placement.rules.failover.restart_check import restart_order
from ovirt_placement.rules.placement_keys.judgement import HostDecision
from ovirt_placement.rules.placement_rules.in_force import is_in_force, not_waiting, restart_orders
from ovirt_placement.rules.placement_rules.kind import RESTART_AFTER, resolved_rules
from ovirt_placement.rules.rule_list import LISTED, NO_UNITS, those_in_force


# -- When a VM restarts after a failure: by the engine's priority, and by rules that it does not know.
class RestartsAfter(Record, frozen=True, omit_defaults=False):
    """A VM that another one restarts after, and the rule that asks for it."""

    vm: NamedVm
    rule: GroupOrRule
    #: Whether the engine waits: it does for VMs of a higher priority alone.
    engine_waits: bool


class Restart(Record, frozen=True, omit_defaults=False):
    """When a highly available VM restarts if its host fails."""

    #: The more, the earlier.
    priority: int
    after: tuple[RestartsAfter, ...]
    #: Where it runs now; null, as all below, if it does not.
    host: NamedHost | None
    #: Its place among the VMs that restart if the host fails; 1 is first. The two differ where nothing says
    #: more.
    earliest: int | None
    latest: int | None
    of: int | None


class PriorityClass(Record, frozen=True, omit_defaults=False):
    """VMs of one priority, in an order in which they may restart."""

    priority: int
    vms: tuple[NamedVm, ...]


class NotWaiting(Record, frozen=True, omit_defaults=False):
    """A rule of the restart order, and the VMs that the engine may restart too early by their priorities."""

    rule: GroupOrRule
    vms: tuple[NamedVm, ...]


def restart_of(snapshot: Snapshot, vm: Vm) -> Restart | None:
    """When a VM restarts; None if it is not highly available."""
    if not vm.ha:
        return None
    after = tuple(
        (other, asked.rule, snapshot.vm_by_id[other].ha_priority > vm.ha_priority)
        for asked in restart_orders(snapshot).after.get(vm.id, ())
        for other in sorted(asked.vms)
        if snapshot.vm_by_id[other].ha
    )
    if vm.host is None or vm.host not in snapshot.host_by_id:
        return with_names(Restart, (vm.ha_priority, after, None, None, None, None), snapshot)
    lost = [one.id for one in snapshot.vms_of_host[vm.host] if one.ha]
    rank = restart_order(snapshot).rank(vm.id, lost)
    found = vm.ha_priority, after, vm.host, rank.earliest, rank.latest, len(lost)
    return with_names(Restart, found, snapshot)


def priority_classes(snapshot: Snapshot, vms: Iterable[str]) -> tuple[PriorityClass, ...]:
    """VMs in the order in which they would restart if all did, the highest priority first."""
    order = restart_order(snapshot)
    classes: dict[int, list[str]] = {}
    for vm in order.ordered(vms):
        classes.setdefault(order.priority(vm), []).append(vm)
    return tuple(with_names(PriorityClass, found, snapshot) for found in classes.items())


def not_waited(snapshot: Snapshot, cluster: str) -> Iterator[NotWaiting]:
    """The rules of a cluster that the engine's priorities do not bring about."""
    for found in resolved_rules(snapshot):
        asked = found.cluster == cluster and found.rule.kind == RESTART_AFTER.name and is_in_force(found)
        if asked and (vms := not_waiting(snapshot, found)):
            yield with_names(NotWaiting, (found.rule.id, vms), snapshot)


# -- in words
def restart_text(name: str, restart: Restart) -> str:
    first, last, count = restart.earliest, restart.latest, restart.of
    if first == last:
        place = f"is number {first} of {count} to restart"
    elif (first, last) == (1, count):
        place = f"is one of {count} VMs that restart in any order"
    else:
        place = f"restarts as number {first} of {count} at the earliest, and {last} at the latest"
    text = f"restart priority {restart.priority}"
    return text if restart.host is None else f"{text}; if {restart.host.name} fails, {name} {place}"


def after_text(name: str, after: RestartsAfter) -> str:
    """In a line, what a VM restarts after, and whether the engine waits for it."""
    waits = "the engine waits for its higher priority"
    if not after.engine_waits:
        waits = "the engine does not wait: its priority is not higher"
    return f"{name} is to restart after {after.vm.name} ({after.rule.title}): {waits}"


# -- Which hosts may take a VM, and by which rule, group and VM the others may not.
class JudgedHost(Record, frozen=True, omit_defaults=False):
    """What all filters together say of one host."""

    host: NamedHost
    accepted: bool
    #: What keeps the VM off the host, and notes, which change nothing.
    reasons: tuple[Annotated[Said, said], ...]
    placement_keys: HostKeys | None


class NotAsked(Record, frozen=True, omit_defaults=False):
    """A filter that the engine does not ask, and the hosts that it refuses."""

    unit: str
    hosts: tuple[Named, ...]


class WhyDocument(Document, frozen=True, kw_only=True, tag="why"):
    """Which hosts may take a VM, and why not the others."""

    vm: NamedVm
    cluster: NamedCluster
    #: Where the VM runs now.
    host: NamedHost | None
    #: VMs that the engine moves together with it, and that its own filters are asked about, too.
    moves_with: tuple[NamedVm, ...]
    hosts: tuple[JudgedHost, ...]
    #: What is to be said of the VM wherever it runs.
    notes: tuple[Annotated[Said, said], ...]
    #: What refuses hosts that nothing else refuses, though the engine does not ask for it: filters of ours
    #: that the scheduling policy of the cluster does not have, as far as that is known.
    not_asked: tuple[NotAsked, ...]
    #: When it restarts if its host fails; null if it is not highly available.
    restart: Restart | None


#: Units that count though no policy has them.
ALSO = Annotated[
    Collection[str],
    Parameter(
        "apply placement keys even if the cluster's policy lacks their units",
        option="--placement-keys",
        given=KEY_UNITS,
    ),
]


def why(snapshot: Snapshot, vm: Vm, hosts: Sequence[Host], also: Collection[str] = NO_UNITS) -> WhyDocument:
    """What all filters that count in the VM's cluster, and those named in `also`, say of each host."""
    judged = judge(snapshot, vm, hosts, also)
    keys = decide_by_keys(snapshot, vm, hosts, also)
    answers = tuple(judged_host(host, snapshot, keys) for host in judged.hosts)
    return with_names(
        WhyDocument,
        vm,
        snapshot,
        vm=vm.id,
        moves_with=judged.moves_with,
        hosts=answers,
        notes=judged.everywhere,
        not_asked=_not_asked(answers, snapshot.cluster_by_id[vm.cluster]),
        restart=restart_of(snapshot, vm),
    )


def judged_host(found: HostJudgement, snapshot: Snapshot, keys: Mapping[str, HostDecision]) -> JudgedHost:
    return with_names(JudgedHost, found, snapshot, placement_keys=keys.get(found.host))


def why_text(answer: WhyDocument, shown: Shown) -> Iterator[str | Table]:
    """Each host, what the engine does not ask, and when the VM restarts."""
    keyed = any(one.placement_keys for one in answer.hosts)
    headers = ("host", "verdict", "why", "by", *(SCORE_HEADERS if keyed else ()))
    if shown.whole or not too_many(answer.hosts):
        yield Table([_judged_row(host) for host in answer.hosts], headers, whole=True)
    else:  # of many hosts, the refused ones, and how many may take the VM
        accepted = [one.host.name for one in answer.hosts if one.accepted]
        if refused := [_judged_row(one) for one in answer.hosts if not one.accepted]:
            yield Table(refused, headers)
            yield ""
        names = f": {listed(accepted)} (--all lists all)" if accepted else ""
        yield f"{len(accepted)} of {len(answer.hosts)} hosts may take VM {answer.vm.name}{names}"
    yield from (f"\n{note.sentence}" for note in answer.notes)
    yield from (f"\n{not_asked_text(one, answer.cluster.name)}" for one in answer.not_asked)
    if shown.words.get("hosts") is None and answer.restart is not None:
        yield f"\n{restart_text(answer.vm.name, answer.restart)}"
        yield from (after_text(answer.vm.name, after) for after in answer.restart.after)


def _judged_row(host: JudgedHost) -> tuple[str, ...]:
    why_so = "\n".join(reason.sentence for reason in host.reasons)
    whose = "\n".join(unit_names(reason.by) for reason in host.reasons)
    keys = score_cells(host.placement_keys) if host.placement_keys else ()
    return host.host.name, "accepted" if host.accepted else "refused", why_so, whose, *keys


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
    reasons: tuple[Annotated[Said, said], ...]


class RankedHost(Record, frozen=True, omit_defaults=False):
    """An accepted host, and the points that the engine's selector gives it: more is better."""

    host: NamedHost
    points: int
    weights: tuple[UnitRank, ...]
    placement_keys: HostKeys | None


class WhereDocument(Document, frozen=True, kw_only=True, tag="where"):
    """The hosts that may take a VM, from best to worst, and those that may not."""

    vm: NamedVm
    cluster: NamedCluster
    #: Where the VM runs now.
    host: NamedHost | None
    hosts: tuple[RankedHost, ...]
    refused: tuple[JudgedHost, ...]


@question(
    "where",
    "hosts for a VM, from best to worst",
    """\
List the hosts that accept a VM, from best to worst by our weights: the rank by each weight (0 is best) and
the points with the policy's factors. The engine's own weights and other sites' units are not included.
Refused hosts follow.
""",
    examples="  ovirt-placement where web1 --all\n",
    text=lambda answer, shown: _where_text(answer, shown),
    routes=(Route("/vms/{name}/where", "the hosts that may take a VM, from best to worst"),),
)
def where(snapshot: Snapshot, vm: Annotated[Vm, THE_VM], also: ALSO = NO_UNITS) -> WhereDocument:
    """The hosts of a VM's cluster in order; the units of placement keys count if named in `also`, too."""
    found, hosts = order(snapshot, vm, also), snapshot.hosts_of_cluster.get(vm.cluster, ())
    keys = decide_by_keys(snapshot, vm, hosts, also)
    refused = tuple(judged_host(host, snapshot, keys) for host in found.refused)

    def ranked(one: Scored) -> RankedHost:
        weights = [
            (unit, by_host[one.host].rank, [(reason, [UNITS[unit]]) for reason in by_host[one.host].reasons])
            for unit, by_host in found.weights.items()
        ]
        return with_names(RankedHost, one, snapshot, weights=weights, placement_keys=keys.get(one.host))

    hosts_ranked = tuple(map(ranked, found.hosts))
    return with_names(WhereDocument, vm, snapshot, vm=vm.id, hosts=hosts_ranked, refused=refused)


def _where_text(answer: WhereDocument, shown: Shown) -> Iterator[str | Table]:
    """A column for each weight; those that rank no host behind another are named below, unless all are."""
    if answer.hosts:
        units = [weight.unit for weight in answer.hosts[0].weights]
        ranking = [
            unit for at, unit in enumerate(units) if any(host.weights[at].rank for host in answer.hosts)
        ]
        columns = units if shown.whole else ranking or units
        keyed = any(one.placement_keys for one in answer.hosts)
        headers = ("host", "points", *columns, "why", *(SCORE_HEADERS if keyed else ()))
        yield Table([_ranked_row(host, columns) for host in answer.hosts], headers)
        if left_out := [unit for unit in units if unit not in columns]:
            yield Folded("")
            yield Folded(f"0 for every host (--all shows them): {', '.join(left_out)}")
    else:
        has = "may take it" if answer.refused else "is there"
        yield f"VM {answer.vm.name} of cluster {answer.cluster.name}: no host {has}."
    yield from _refused_text(answer.refused, whole=shown.whole)


def _ranked_row(host: RankedHost, units: Collection[str]) -> tuple[object, ...]:
    reasons = (reason.sentence for weight in host.weights for reason in weight.reasons)
    ranks = (weight.rank for weight in host.weights if weight.unit in units)
    keys = score_cells(host.placement_keys) if host.placement_keys else ()
    return host.host.name, host.points, *ranks, "\n".join(dict.fromkeys(reasons)), *keys


def _refused_text(refused: Sequence[JudgedHost], *, whole: bool) -> Iterator[str]:
    """Whose verdict keeps the VM off each other host; of many, how many by whom."""
    if refused:
        yield ""
    by_units: defaultdict[str, list[str]] = defaultdict(list)
    for host in refused:
        by = dict.fromkeys(unit for reason in host.reasons if reason.veto for unit in reason.by)
        by_units[unit_names(by)].append(host.host.name)
    for units, names in by_units.items():
        if too_many(refused) and not whole and len(names) > 1:
            yield f"{len(names)} hosts are refused by {units}"
        else:
            yield from (f"{name} is refused by {units}" for name in names)
