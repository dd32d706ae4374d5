"""Groups that ask for opposite things, and hard groups, rules and keys that cannot all be satisfied."""

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from msgspec.structs import replace

from ovirt_placement.answers.document import Document, Shown, Table, listed
from ovirt_placement.answers.question import SOME_CLUSTERS, VMS, Names, Parameter, Route, question
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import Cluster, Host, Snapshot
from ovirt_placement.model.names import GroupOrRule, Named, NamedGroup, NamedHost, NamedVm, named_groups
from ovirt_placement.model.record import From, Record, with_names
from ovirt_placement.planning.strategies import OPTIMAL_IS_THERE
from ovirt_placement.rules import catalogue
from ovirt_placement.rules.affinity.conflicts import ConflictType, find_conflicts, judge_groups
from ovirt_placement.rules.affinity.groups import tied_parts
from ovirt_placement.rules.catalogue import asks
from ovirt_placement.rules.elements.rule import Ask, AtMost, Judgement

# -- Hard groups, placement rules and keys that cannot be satisfied together, as data and in a sentence.
NEEDS_PLANNER = "needs OR-Tools: install ovirt-placement[planner]"


class ContradictionFound(Record, frozen=True, omit_defaults=False, kw_only=True):
    """Hard rules that cannot be satisfied together, though without any one of them the others can."""

    #: Affinity groups, legacy labels and placement rules.
    groups: tuple[GroupOrRule, ...]
    #: VMs whose placement keys have a part in it.
    keys_of: tuple[NamedVm, ...] = ()
    vms: tuple[NamedVm, ...]
    #: Whether they could be satisfied if hosts had more memory.
    memory: bool = False
    #: Whether it is proven that no smaller set is contradictory.
    smallest: bool


class RulesJudged(Record, frozen=True):
    """What is proven about the hard rules of a cluster; sets by the ids of groups and placement rules."""

    contradictions: tuple[ContradictionFound, ...]
    #: Sets for which the work budget ended before an answer.
    unknown: tuple[tuple[str, ...], ...]
    #: Sets that need OR-Tools, where it is not installed.
    unjudged: tuple[tuple[str, ...], ...]


#: The last answer about each cluster, with what it hangs on: none of that is where VMs run now. A page that
#: is looked at all day asks again whenever a VM has moved.
_remembered: dict[str, tuple[Snapshot, RulesJudged]] = {}
#: An answer may take half a minute: who asks about the same cluster meanwhile waits for it, and no other.
_judging: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


def judge_rules(snapshot: Snapshot, cluster: str) -> RulesJudged:
    """All hard rules of a cluster: groups alone without OR-Tools, with placement rules and keys by it."""
    standing = _standing(snapshot)
    with _judging[cluster]:
        known = _remembered.get(cluster)
        if known is None or known[0] != standing:
            known = _remembered[cluster] = standing, _judged(standing, cluster)
        return known[1]


def _standing(snapshot: Snapshot) -> Snapshot:
    """The state without what changes by itself."""
    hosts = tuple(
        Host(
            id=host.id, name=host.name, cluster=host.cluster, tags=host.tags, status="up",
            memory_mb=host.memory_mb, free_mb=host.memory_mb, cpu_percent=None, cores=host.cores,
        )
        for host in snapshot.hosts
    )  # fmt: skip
    vms = tuple(
        replace(
            vm, host=None, status="down", migrating_to=None, running_since=None, usage_mem_percent=None,
            usage_cpu_percent=None,
        )
        for vm in snapshot.vms
    )  # fmt: skip
    return replace(snapshot, hosts=hosts, vms=vms, pending=(), draining_hosts=())


def _judged(snapshot: Snapshot, cluster: str) -> RulesJudged:
    alone, judged = judge_groups(snapshot, cluster), Judgement((), ())
    parts = tied_parts(asks(snapshot, cluster))
    mixed = [part for part in parts if any(one.of_rule or one.of_keys for one in part)]
    tried, unjudged = (mixed, []) if OPTIMAL_IS_THERE else ([], mixed)
    if tried:
        # Only here, so that all else works without OR-Tools.
        from ovirt_placement.planning.solver.contradictions import judge

        judged = judge(snapshot, cluster, tried)
    unknown = [*map(_asked_ids, judged.unknown)]
    open_still = frozenset(one for groups in unknown for one in groups)
    answered = [groups for groups in map(frozenset, map(_asked_ids, tried)) if open_still.isdisjoint(groups)]
    left = (
        groups
        for groups in map(_asked_ids, alone.unknown)
        if not any(part.issuperset(groups) for part in answered)
    )
    # Of those among groups alone, none that has a group in common with what is named already.
    named = {group for one in judged.contradictions for group in one.groups}
    others = (one for one in alone.contradictions if named.isdisjoint(one.groups))
    return RulesJudged(
        tuple(with_names(ContradictionFound, one, snapshot) for one in (*judged.contradictions, *others)),
        (*unknown, *left),
        tuple(map(_asked_ids, unjudged)),
    )


def _asked_ids(part: Sequence[Ask]) -> tuple[str, ...]:
    """Groups and rules by their ids; keys have none."""
    return tuple(one.id for one in part if not one.of_keys)


# -- in words
def sentence(contradiction: ContradictionFound, *, whole: bool = True) -> str:
    names = listed(titles(contradiction), whole=whole)
    together = " together" if len(contradiction.groups) + len(contradiction.keys_of) > 1 else ""
    return f"{names} cannot be satisfied{together}{remark(contradiction)}"


def titles(contradiction: ContradictionFound) -> list[str]:
    return [
        *(group.title for group in contradiction.groups),
        *(f"placement keys of VM {vm.name}" for vm in contradiction.keys_of),
    ]


def remark(contradiction: ContradictionFound) -> str:
    """What else is known."""
    memory = " with the memory that hosts have" if contradiction.memory else ""
    return memory + ("" if contradiction.smallest else " (perhaps fewer of them cannot)")


# -- Affinity groups that ask for opposite things, and hard rules that cannot all be satisfied together.
_UNKNOWN = "not known whether they can be satisfied together"

#: What a conflict of each type is, in words.
MEANINGS = {
    ConflictType.HARD_POSITIVE_AND_NEGATIVE_HOSTS: "hard groups want a VM on a host and off it",
    ConflictType.POSITIVE_AND_NEGATIVE_HOSTS: "groups want a VM on a host and off it",
    ConflictType.HOSTS_AGAINST_TOGETHER: "of VMs that run together one is wanted on a host, another off it",
    ConflictType.HOSTS_AGAINST_APART: "VMs that run apart are wanted on too few hosts",
    ConflictType.NO_COMMON_HOST: "a VM is wanted on hosts that have none in common",
    ConflictType.TOGETHER_AGAINST_APART: "VMs are to run together and apart",
}


class ConflictFound(Record, frozen=True, omit_defaults=False):
    """Groups that ask for opposite things."""

    #: The engine's name for it.
    kind: Annotated[ConflictType, From("type")]
    sentence: Annotated[str, From(lambda one, _: MEANINGS[one.type])]
    groups: tuple[GroupOrRule, ...]
    vms: tuple[NamedVm, ...]
    hosts: tuple[NamedHost, ...]
    #: Of the VMs, those that a negative group keeps apart.
    negative_vms: tuple[NamedVm, ...]
    #: Whether the engine would save the groups nevertheless, with a warning.
    savable: bool


class Unreserved(Record, frozen=True, omit_defaults=False):
    """A hard rule that leaves highly available VMs no host to restart on, wherever they all run."""

    groups: tuple[GroupOrRule, ...]
    vms: tuple[NamedVm, ...]
    #: Hosts that the rule needs, that there are, and that are to be able to fail at once.
    needed: int
    hosts: int
    failures: int


class ClusterConflicts(Record, frozen=True, omit_defaults=False):
    """What is wrong among the groups, placement rules and placement keys of one cluster."""

    cluster: Named
    #: Whether all hard rules that were asked for can be satisfied together; null if that is not known.
    feasible: bool | None
    conflicts: tuple[ConflictFound, ...]
    contradictions: tuple[ContradictionFound, ...]
    #: Sets of groups and placement rules for which the work budget ended before an answer.
    unknown: tuple[tuple[NamedGroup, ...], ...]
    #: Sets that cannot be judged without OR-Tools, which is not installed.
    unjudged: tuple[tuple[NamedGroup, ...], ...]
    #: Rules that cannot be satisfied together with the HA reservation.
    unreserved: tuple[Unreserved, ...]


class ConflictsDocument(Document, frozen=True, kw_only=True, tag="conflicts"):
    """Affinity groups that ask for opposite things, and hard rules that cannot all be satisfied together."""

    clusters: tuple[ClusterConflicts, ...]

    @property
    def sound(self) -> bool:
        return all(one.feasible is True and not one.conflicts and not one.unreserved for one in self.clusters)


_GROUPS_AND_RULES = Names(
    "affinity group or placement rule",
    lambda snapshot, _: named_groups([*snapshot.group_by_id, *snapshot.rule_by_id], snapshot),
)


@question(
    "conflicts",
    "affinity groups and placement rules that cannot be satisfied together",
    """\
List conflicts among affinity groups, and test whether all hard groups, placement rules and placement keys
of a cluster can be satisfied together; if not, name the smallest set that cannot. See docs/rules.md.
The exit status is 1 if there is any conflict, or if the test could not be finished.
""",
    examples="  ovirt-placement conflicts --group web-apart\n",
    text=lambda answer, shown: _conflicts_text(answer, shown),
    status=lambda answer, _: int(not answer.sound),
    measured=Measured.NOTHING,
    routes=(Route("/conflicts", "groups and placement rules that cannot be satisfied together"),),
)
def conflicts(
    snapshot: Snapshot,
    clusters: Annotated[Iterable[Cluster], SOME_CLUSTERS],
    *,
    vm: Annotated[str | None, Parameter("only of this VM", "VM", VMS)] = None,
    group: Annotated[
        str | None, Parameter("only of this affinity group or placement rule", "GROUP", _GROUPS_AND_RULES)
    ] = None,
) -> ConflictsDocument:
    """What is wrong in these clusters, or of it what may concern a VM and a group of these ids."""

    def concerns(groups: Iterable[str], vms: Iterable[str]) -> bool:
        return (vm is None or vm in vms) and (group is None or group in groups)

    def among(sets: Iterable[tuple[str, ...]]) -> tuple[tuple[NamedGroup, ...], ...]:
        return tuple(named_groups(one, snapshot) for one in sets if group is None or group in one)

    def of_cluster(cluster: Cluster) -> ClusterConflicts:
        judged = judge_rules(snapshot, cluster.id)
        found = [one for one in judged.contradictions if concerns(_ids(one.groups), _ids(one.vms))]
        unknown, unjudged = among(judged.unknown), among(judged.unjudged)
        clashes = [one for one in find_conflicts(snapshot, cluster.id) if concerns(one.groups, one.vms)]
        return ClusterConflicts(
            cluster=Named(cluster.id, cluster.name),
            feasible=False if found else None if unknown or unjudged else True,
            conflicts=tuple(with_names(ConflictFound, one, snapshot) for one in clashes),
            contradictions=tuple(found),
            unknown=unknown,
            unjudged=unjudged,
            unreserved=tuple(
                one for one in _unreserved(snapshot, cluster) if concerns(_ids(one.groups), _ids(one.vms))
            ),
        )

    return ConflictsDocument(clusters=tuple(map(of_cluster, clusters)))


def _unreserved(snapshot: Snapshot, cluster: Cluster) -> Iterator[Unreserved]:
    """Rules whose VMs leave no host for one whose host fails."""
    hosts = len(snapshot.hosts_of_cluster.get(cluster.id, ()))
    for rule in catalogue.constraints(snapshot, cluster.id) if cluster.ha_reservation else ():
        form, vms = rule.form, tuple(vm for vm in rule.vms if vm in snapshot.vm_by_id)
        if not rule.hard or not isinstance(form, AtMost) or form.place_of or not form.most:
            continue
        needed = form.places_needed(vms)
        lost = form.sets(vm for vm in vms if snapshot.vm_by_id[vm].ha)
        # Where not even one host is left, it is for no rule.
        left = max(1, hosts - cluster.ha_failures)
        if left < needed <= hosts and _leaves_no_host(form.most, len(form.sets(vms)), len(lost), hosts, left):
            found = rule.groups, vms, needed, hosts, cluster.ha_failures
            yield with_names(Unreserved, found, snapshot)


def _leaves_no_host(most: int, vms: int, restarting: int, hosts: int, left: int) -> bool:
    """Whether some of the VMs that restart find no room, however all are placed, once hosts have failed.

    Others that ran on these do not restart: if each host of VMs that do can have enough others, there is
    room. Of several hosts that fail, all but one are those that have the fewest others.
    """
    others = vms - restarting
    enough = vms - most * left - (hosts - left - 1) * others // (hosts - 1)
    return enough > 0 < restarting and (enough >= most or -(-restarting // (most - enough)) * enough > others)


def _ids(named: Iterable[Named]) -> list[str]:
    return [one.id for one in named]


# -- in words
def _conflicts_text(answer: ConflictsDocument, shown: Shown) -> Iterator[str | Table]:
    if found := [(one.cluster.name, *row) for one in answer.clusters for row in _rows(one)]:
        yield Table(found, ("cluster", "conflict", "rules", "VMs", "hosts", "savable"))
    elif about := next(filter(None, map(shown.words.get, ("vm", "group", "clusters"))), None):
        yield f"No conflict concerns {about}."
    else:
        yield "No affinity groups clash, and all hard rules can be satisfied together."


def _rows(found: ClusterConflicts) -> Iterator[tuple[str, ...]]:
    """In words: conflict, groups, VMs, hosts, and whether the engine would save the groups."""
    for conflict in found.conflicts:
        savable = "yes" if conflict.savable else "no"
        vms, hosts = _names(conflict.vms), _names(conflict.hosts)
        yield conflict.sentence, _titles(conflict.groups), vms, hosts, savable
    for each in found.contradictions:
        together = "" if len(titles(each)) == 1 else " together"
        what = f"cannot be satisfied{together}{remark(each)}"
        yield what, "\n".join(titles(each)), _names(each.vms), "", ""
    for rule in found.unreserved:
        what = (
            "cannot be satisfied together with the HA reservation:"
            f" its VMs need {rule.needed} hosts, and {rule.failures} of {rule.hosts} may fail"
        )
        yield what, _titles(rule.groups), _names(rule.vms), "", ""
    yield from ((_UNKNOWN, _titles(unknown), "", "", "") for unknown in found.unknown)
    for unjudged in found.unjudged:
        yield f"{_UNKNOWN}: {NEEDS_PLANNER}", _titles(unjudged), "", "", ""


def _titles(groups: Iterable[NamedGroup]) -> str:
    return "\n".join(group.title for group in groups)


def _names(named: Iterable[Named]) -> str:
    return "\n".join(one.name for one in named)
