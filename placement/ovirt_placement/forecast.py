"""Changes that are asked about, and what they lead to: violated rules, migrations, failures survived."""

import itertools
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from msgspec.structs import replace

from ovirt_placement.engine.policies import Policy
from ovirt_placement.model import AffinityGroup, AffinityLabel, PlacementKey, Snapshot
from ovirt_placement.model.infrastructure import RESTING_STATUSES
from ovirt_placement.model.record import Record
from ovirt_placement.planning.outages import Evacuation, Start, repeated_plan, survived
from ovirt_placement.planning.plan import Deadline, Plan
from ovirt_placement.planning.problem.build_problem import PlanOptions, Repair
from ovirt_placement.planning.steps import end_of
from ovirt_placement.rules import catalogue
from ovirt_placement.rules.affinity.constraints import Together
from ovirt_placement.rules.catalogue import Violation, find_violations, judge
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.elements.resources import vms_coming_to, with_left
from ovirt_placement.rules.elements.rule import Constraint
from ovirt_placement.rules.failover.outcomes import ForeseenFailures
from ovirt_placement.rules.placement_keys.units import OnAcceptedHosts
from ovirt_placement.rules.placement_rules.kind import resolved_rules
from ovirt_placement.store.keys import KeyChange
from ovirt_placement.store.placement_rules import RuleChange

#: What can be asked about; of each, what stands for it where no number is given.
MEASURES: Final = {
    "violated": ">0",
    "conflicts": ">0",
    "unplaced": ">0",
    "moves": ">0",
    "staying": ">0",
    "failures": "<1",
}
_OPERATORS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FORM: Final = re.compile(r"(\w+)\s*(?:(<=|>=|<|>)\s*(\d+))?\Z")


def with_group(snapshot: Snapshot, group: AffinityGroup) -> Snapshot:
    """With this group, in place of one that has its id."""
    others = without_group(snapshot, group.id).affinity_groups
    return replace(snapshot, affinity_groups=(*others, group))


def without_group(snapshot: Snapshot, group: str) -> Snapshot:
    return replace(
        snapshot, affinity_groups=tuple(other for other in snapshot.affinity_groups if other.id != group)
    )


def with_keys(snapshot: Snapshot, change: KeyChange) -> Snapshot:
    """With placement keys changed: some go, and others come in the place of those that stand there."""
    gone = {key.place for key in (*change.remove, *change.put)}
    kept = (key for key in snapshot.placement_keys if key.place not in gone)
    return replace(snapshot, placement_keys=(*kept, *change.put))


def with_host(snapshot: Snapshot, like: str, count: int) -> Snapshot:
    """With hosts as large as one that is known, in its cluster, up and empty; labels and tags are alike."""
    model = snapshot.host_by_id[like]
    vms = (*snapshot.vms_of_host.get(like, ()), *vms_coming_to(snapshot.confirmed).get(like, ()))
    there = {vm.id: vm for vm in vms}
    empty = replace(with_left(model, *there.values()), status="up", cpu_percent=0, spm=False)
    names = _names(model.name, count, snapshot)
    return replace(
        snapshot,
        hosts=(*snapshot.hosts, *(replace(empty, id=name, name=name) for name in names)),
        affinity_labels=tuple(
            replace(label, hosts=(*label.hosts, *sorted(names))) if model.id in label.hosts else label
            for label in snapshot.affinity_labels
        ),
    )


_Listing = TypeVar("_Listing", AffinityGroup, AffinityLabel)


def with_vm(snapshot: Snapshot, like: str, count: int) -> tuple[Snapshot, tuple[str, ...]]:
    """With VMs like one that is known, which are down; they belong to the same affinity groups and labels."""
    model = snapshot.vm_by_id[like]
    down = replace(model, host=None, status="down", migrating_to=None)
    names = _names(model.name, count, snapshot)

    def joined(listing: _Listing) -> _Listing:
        return replace(listing, vms=(*listing.vms, *names)) if model.id in listing.vms else listing

    added = replace(
        snapshot,
        vms=(*snapshot.vms, *(replace(down, id=name, name=name) for name in names)),
        affinity_groups=tuple(map(joined, snapshot.affinity_groups)),
        affinity_labels=tuple(map(joined, snapshot.affinity_labels)),
    )
    return added, names


def _names(model: str, count: int, snapshot: Snapshot) -> tuple[str, ...]:
    """Names that are not in use; they are ids, too."""
    names = {*(vm.name for vm in snapshot.vms), *(host.name for host in snapshot.hosts)}
    known = {*snapshot.vm_by_id, *snapshot.host_by_id, *names}
    numbered = (f"{model}+{number}" for number in itertools.count(1))
    return tuple(itertools.islice((name for name in numbered if name not in known), count))


class Change(NamedTuple):
    """A state with a change, the clusters that it concerns, and what speaks against it, as sentences."""

    after: Snapshot
    clusters: Iterable[str]
    against: Sequence[str] = ()
    #: What hosts are emptied by, where hosts fail or VMs start, and VMs that stay down with their hosts.
    emptied: Sequence[Evacuation] = ()
    starts: Sequence[Start] = ()
    stopped: Sequence[str] = ()


def changed_groups(
    state: Snapshot,
    gone: Sequence[AffinityGroup] = (),
    meant: Sequence[AffinityGroup] = (),
    against: Sequence[str] = (),
) -> Change:
    """Without the groups that are to be gone, and with others as they are meant to be."""
    after = state
    for group in gone:
        after = without_group(after, group.id)
    for group in meant:
        after = with_group(after, replace(group, id=group.id or group.name))  # a new one has no id yet
    return Change(after, [group.cluster for group in (*gone, *meant)], against)


def changed_rules(state: Snapshot, change: RuleChange, against: Sequence[str] = ()) -> Change:
    """With the rules as they are to be, in the clusters of those that come, change or go."""
    names = {*change.remove, *(rule.name for rule in change.put)}
    after = replace(state, placement_rules=change.applied(state.placement_rules))
    clusters = [
        found.cluster
        for each in (state, after)
        for found in resolved_rules(each)
        if found.rule.name in names and found.cluster is not None
    ]
    return Change(after, clusters, against)


def changed_policies(
    state: Snapshot, policies: Mapping[str, Policy], keys: Iterable[PlacementKey], against: Sequence[str] = ()
) -> Change:
    """With other policies, by cluster, and with the special keys that their clusters are given."""
    clusters = tuple(
        replace(cluster, policy=policy.factors, scheduling_policy=policy.external)
        if (policy := policies.get(cluster.id))
        else cluster
        for cluster in state.clusters
    )
    after = with_keys(replace(state, clusters=clusters), KeyChange(put=tuple(keys)))
    return Change(after, policies, against)


class Condition(NamedTuple):
    """It holds if a measure stands so to a number."""

    measure: str
    sign: str
    number: int


def conditions_of(text: str) -> tuple[Condition, ...]:
    """Read conditions with commas between them. Raises `ValueError` with what is wrong."""
    return tuple(_condition(word.strip()) for word in text.split(","))


def _condition(word: str) -> Condition:
    match = _FORM.match(word)
    if match is None or match[1] not in MEASURES:
        raise ValueError(f'"{word}": write {", ".join(MEASURES)}, or one of them with a number as in moves>5')
    if match[2] is None:
        return _condition(match[1] + MEASURES[match[1]])
    return Condition(match[1], match[2], int(match[3]))


def holding(conditions: Iterable[Condition], measured: Mapping[str, int | None]) -> tuple[str, ...]:
    """Those that hold, each with what was measured; of what is not known none does."""
    return tuple(
        f"{condition.measure}{condition.sign}{condition.number} ({value})"
        for condition in conditions
        if (value := measured[condition.measure]) is not None
        and _OPERATORS[condition.sign](value, condition.number)
    )


class _Key(NamedTuple):
    """What a rule is known by from one state to the other."""

    family: str
    #: Its groups; of placement keys, the VM.
    groups: tuple[str, ...]
    positive: bool
    hard: bool


class Difference(Record, frozen=True):
    """What becomes of rules."""

    #: Violated by VMs that did not violate it before.
    violated: tuple[Violation, ...]
    #: Violated no more.
    repaired: tuple[Violation, ...]
    #: Violated before and after by the same VMs, or fewer.
    as_before: tuple[Violation, ...]


def difference(before: Snapshot, after: Snapshot, cluster: str) -> Difference:
    """Compare two states of a cluster; VMs that their placement keys refuse where they run count, too."""
    old, new = _violated(before, cluster), _violated(after, cluster)
    earlier = {key: [other for other in old if _continues(key, other)] for key in new}
    worse = {key for key, one in new.items() if _is_worse(one, [old[other] for other in earlier[key]])}
    continued = {other for others in earlier.values() for other in others}
    return Difference(
        violated=tuple(one for key, one in new.items() if key in worse),
        repaired=tuple(one for key, one in old.items() if key not in continued and not _stays(one, after)),
        as_before=tuple(one for key, one in new.items() if key not in worse),
    )


def _stays(violation: Violation, after: Snapshot) -> bool:
    """Whether a VM that its keys refuse stays on a host that takes none any more, so that none asks there."""
    if not isinstance(violation.constraint, OnAcceptedHosts):
        return False
    vms = (after.vm_by_id[vm] for vm in violation.offenders if vm in after.vm_by_id)
    return any(vm.host is not None and not after.host_by_id[vm.host].up for vm in vms)


def _continues(key: _Key, other: _Key) -> bool:
    """Whether two are the same, or of groups that shared members tie, of which some have come or gone."""
    shares = key.family == Together.family and not {*key.groups}.isdisjoint(other.groups)
    return key == other or (shares and key._replace(groups=other.groups) == other)


def _is_worse(violation: Violation, earlier: Sequence[Violation]) -> bool:
    """Whether VMs, or groups taken alone, violate it that did not before."""
    groups = {group for was in earlier for group in was.violated}
    offenders = {vm for was in earlier for vm in was.offenders}
    # Where all of them were to be together before, a draw may say which of them is off.
    tied = isinstance(violation.constraint, Together)
    asked = tied and any({*violation.constraint.vms} <= {*was.constraint.vms} for was in earlier)
    as_before = asked or offenders.issuperset(violation.offenders)
    return not (earlier and as_before and groups.issuperset(violation.violated))


def find_barred(
    before: Snapshot, after: Snapshot, cluster: str, deadline: Deadline
) -> tuple[tuple[str, ...], int]:
    """VMs that are down, which some host would take before a change, and none after it.

    Asked are those that the change is about; the number is how many of them there was no time for.
    """
    about = _concerned(before, after, cluster)
    concerned = [
        vm.id
        for vm in after.vms
        if vm.cluster == cluster
        and vm.status in RESTING_STATUSES
        and vm.id in before.vm_by_id
        and vm.id in about
    ]
    found: list[str] = []
    for number, vm in enumerate(concerned):
        if deadline.over:
            return tuple(found), len(concerned) - number
        if not _starts(after, vm) and _starts(before, vm):
            found.append(vm)
    return tuple(found), 0


def _concerned(before: Snapshot, after: Snapshot, cluster: str) -> Collection[str]:
    """The VMs of rules that come, go or change; all where keys or the policy of the cluster change."""
    same_policy = before.cluster_by_id.get(cluster) == after.cluster_by_id.get(cluster)
    if before.placement_keys != after.placement_keys or not same_policy:
        return after.vm_by_id
    old, new = (
        {(one.family, one.groups, one.hard, one.vms): one for one in catalogue.constraints(state, cluster)}
        for state in (before, after)
    )
    changed = (key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    return {vm for *_, vms in changed for vm in vms}


def _starts(state: Snapshot, vm: str) -> bool:
    known = state.vm_by_id[vm]
    hosts = [host for host in state.hosts_of_cluster.get(known.cluster, ()) if host.up]
    return any(host.accepted for host in judge(state, known, hosts).hosts)


def _violated(snapshot: Snapshot, cluster: str) -> dict[_Key, Violation]:
    violations = find_violations(snapshot, cluster)
    found = {_key(one.constraint, one.groups): one for one in violations}
    placement = SnapshotPlacement(snapshot)
    for refused in catalogue.momentary_constraints(snapshot, cluster):
        now = Violation(refused, (), (), refused.offenders(placement))
        found[_key(refused, refused.vms)] = now
    return found


def _key(constraint: Constraint, groups: tuple[str, ...]) -> _Key:
    return _Key(constraint.family, groups, constraint.positive, constraint.hard)


@dataclass(frozen=True, slots=True)
class Outlook:
    """One cluster."""

    cluster: str
    rules: Difference
    #: VMs that are down, and that no host would take any more once the plan is carried out; and how many
    #: there was no time to ask about.
    barred: tuple[str, ...]
    unjudged_starts: int
    #: For what the change violates; what was violated before stays as it is.
    plan: Plan
    #: How many hosts may fail: now, with the change as VMs run today, and once the plan is carried out. None
    #: without highly available VMs.
    failures_now: ForeseenFailures | None
    failures_changed: ForeseenFailures | None
    failures_settled: ForeseenFailures | None


def foresee(
    before: Snapshot, after: Snapshot, cluster: str, repair: frozenset[Repair], deadline: Deadline
) -> Outlook:
    """Compare the state of a cluster as it is with what it would be."""
    rules = difference(before, after, cluster)
    plan = _plan(after, cluster, rules, repair, deadline)
    changed = survived(after, cluster)
    end = end_of(after, plan.steps)
    barred, unjudged = find_barred(before, end, cluster, deadline)
    return Outlook(
        cluster=cluster,
        rules=rules,
        barred=barred,
        unjudged_starts=unjudged,
        plan=plan,
        failures_now=survived(before, cluster),
        failures_changed=changed,
        failures_settled=survived(end, cluster) if plan.steps else changed,
    )


def _plan(
    after: Snapshot, cluster: str, rules: Difference, repair: frozenset[Repair], deadline: Deadline
) -> Plan:
    """Only for what the change violates."""
    if not rules.violated:
        return Plan(cluster=cluster, strategy="")
    new = {group for one in rules.violated for group in one.constraint.groups}
    old = {group for one in rules.as_before for group in one.constraint.groups}
    keys = any(one.constraint.family == "placement_keys" for one in rules.violated)
    options = PlanOptions(repair=repair, spared=frozenset(old - new), keys=keys)
    return repeated_plan(after, cluster, options, deadline)
