"""Changes of affinity groups: what the engine would refuse, in which order it takes them, and what became."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from msgspec.structs import replace

from ovirt_placement.answers.conflicts import MEANINGS, judge_rules, remark, titles
from ovirt_placement.answers.document import DRY_RUN, ChangeDocument
from ovirt_placement.answers.groups import MEMBER_WORDS, DescribedGroup, table_of
from ovirt_placement.forecast import with_group, without_group
from ovirt_placement.model import AffinityGroup, Snapshot
from ovirt_placement.model.names import host_name, vm_name
from ovirt_placement.rules.affinity.conflicts import Conflict, ConflictType, find_clashes, merged
from ovirt_placement.rules.affinity.groups import members


# -- Judges an affinity group before the engine does: what it would refuse, and what it would let through.
def clashes_of(snapshot: Snapshot, group: AffinityGroup) -> tuple[Conflict, ...]:
    """The conflicts that need the group, then the others of its cluster: at most one of each type."""
    clashes = _smallest(tuple(_named(snapshot, group)))
    own, others = ([one for one in clashes if (group.id in one.groups) is its] for its in (True, False))
    return (*merged(own), *merged(others))


def _smallest(clashes: Sequence[Conflict]) -> tuple[Conflict, ...]:
    """Without those that hold another one, which is as grave and needs fewer groups."""
    by_groups = {(one.type, one.savable, frozenset(one.groups)) for one in clashes}

    def holds_another(clash: Conflict) -> bool:
        groups = frozenset(clash.groups)
        return any(
            one_type is clash.type and smaller < groups and (clash.savable or not savable)
            for one_type, savable, smaller in by_groups
        )

    return tuple(one for one in clashes if not holds_another(one))


def _named(snapshot: Snapshot, group: AffinityGroup) -> Iterator[Conflict]:
    """Each by itself; where VMs are to be together and apart, with what ties each two kinds of them."""
    vms_of = members(snapshot)
    positive = [
        one.id
        for one in snapshot.affinity_groups
        if one.cluster == group.cluster and one.vms_rule.enabled and one.vms_rule.positive
    ]
    groups_of: defaultdict[str, list[str]] = defaultdict(list)
    # Where several tie the same VMs, the one that is asked about does.
    for positive_group in sorted(positive, key=lambda each: each != group.id):
        for vm in vms_of[positive_group]:
            groups_of[vm].append(positive_group)
    for clash in find_clashes(snapshot, group.cluster):
        if clash.type is not ConflictType.TOGETHER_AGAINST_APART:
            yield clash
            continue
        alike: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        for vm in clash.negative_vms:
            alike[tuple(groups_of[vm])].append(vm)
        kinds = [*alike.values()]
        for number, vms in enumerate(kinds):
            chains = _chains_from(vms[0], groups_of, vms_of)
            for others in kinds[number:]:
                pair = tuple(sorted({*vms, *others}))
                if len(pair) > 1:
                    groups = (*clash.groups, *chains[others[-1]])
                    yield Conflict(clash.type, groups, pair, negative_vms=pair, savable=clash.savable)


def _chains_from(
    start: str, groups_of: Mapping[str, Sequence[str]], vms_of: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """By each VM that is tied to this one, the ids of the fewest positive groups that tie them."""
    chains: dict[str, tuple[str, ...]] = {start: ()}
    frontier, passed = [start], set[str]()
    for vm in frontier:  # which grows
        for group in groups_of[vm]:
            if group not in passed:
                passed.add(group)
                fresh = [member for member in vms_of[group] if member not in chains]
                chains |= dict.fromkeys(fresh, (*chains[vm], group))
                frontier += fresh
    return chains


#: What a name in the engine may hold besides letters of any script: no other digits.
_ALSO_LEGAL = frozenset("0123456789.-_")
_LONGEST_NAME = 255

#: The engine refuses these whatever is enforcing, and warns of the others in its event log.
_REFUSED = {ConflictType.HARD_POSITIVE_AND_NEGATIVE_HOSTS, ConflictType.TOGETHER_AGAINST_APART}
_THERE_ALREADY = "the engine saves no group of this cluster as long as others clash"


@dataclass(frozen=True)
class GroupJudgement:
    """Sentences; the engine saves the group if nothing is refused."""

    #: What the engine refuses of any group, and how it stands.
    refusals: tuple[str, ...]
    #: What it refuses of a whole group, and accepts when members are added one by one.
    unchecked: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return (*self.refusals, *self.unchecked, *self.warnings)


def judge(snapshot: Snapshot, group: AffinityGroup) -> GroupJudgement:
    """Judge a group as it is to be, new or changed, among all others of the engine."""
    others = tuple(other for other in snapshot.affinity_groups if other.id != group.id)
    intended = replace(snapshot, affinity_groups=(*others, group))
    remarks = tuple(_remarks(intended, group))
    return GroupJudgement(
        refusals=tuple(_refusals(snapshot, group, others)),
        unchecked=tuple(text for refused, text in remarks if refused),
        warnings=tuple(text for refused, text in remarks if not refused),
    )


def _remarks(intended: Snapshot, group: AffinityGroup) -> Iterator[tuple[bool, str]]:
    """What is to be said of it among all others, each with whether the engine refuses it for that."""
    own, hosts = intended.cluster_by_id[group.cluster].name, group.hosts_rule
    for label, member, cluster in _foreign(intended, group):
        if label is None:
            yield True, f"{member} belongs to cluster {cluster}, the group to cluster {own}"
        else:
            brings = f"label {label} brings {member} of cluster {cluster}"
            yield False, f"{brings}: our rules do not count it, the engine's do"
    if hosts.enabled and hosts.positive and not intended.group_hosts[group.id]:
        means = "the engine lets no host run its VMs" if hosts.hard else "it is violated"
        yield False, f"the host rule is positive and there are no hosts: {means}"
    yield from _conflicts(intended, group)
    for contradiction in judge_rules(intended, group.cluster).contradictions:
        if any(named.id == group.id for named in contradiction.groups):
            which = ", ".join(sorted(titles(contradiction)))
            yield False, f"these hard rules cannot be satisfied together{remark(contradiction)}: {which}"


def _refusals(snapshot: Snapshot, group: AffinityGroup, others: Iterable[AffinityGroup]) -> Iterator[str]:
    legal = all(one.isalpha() or one in _ALSO_LEGAL for one in group.name)
    if not legal or not 1 <= len(group.name) <= _LONGEST_NAME:
        yield (
            f'the name "{group.name}": a name has 1 to {_LONGEST_NAME} letters, digits, dots, hyphens and'
            " underscores"
        )
    if any(other.name == group.name for other in others):
        yield f'the name "{group.name}" is used already; names are unique over all clusters'
    for name, kind in MEMBER_WORDS.items():
        table = table_of(name, snapshot)
        for member, times in Counter(getattr(group, name)).items():
            if times > 1:
                yield f"{kind} {table[member].name if member in table else member} is a member already"


def _foreign(snapshot: Snapshot, group: AffinityGroup) -> Iterator[tuple[str | None, str, str]]:
    """Members of other clusters, each with the label that brings it, if one does, and its cluster."""
    vm_labels = [snapshot.label_by_id[one] for one in group.vm_labels]
    host_labels = [snapshot.label_by_id[one] for one in group.host_labels]
    for label, kind, ids in (
        (None, "VM", group.vms),
        (None, "host", group.hosts),
        *((one.name, "VM", one.vms) for one in vm_labels),
        *((one.name, "host", one.hosts) for one in host_labels),
    ):
        for member in dict.fromkeys(ids):
            known = snapshot.vm_by_id.get(member) or snapshot.host_by_id.get(member)
            if known is not None and known.cluster != group.cluster:
                yield label, f"{kind} {known.name}", snapshot.cluster_by_id[known.cluster].name


def _conflicts(intended: Snapshot, group: AffinityGroup) -> Iterator[tuple[bool, str]]:
    """Those that keep the engine from saving, also those that it has already; and those it tolerates."""
    # Members of other clusters count, as they do when the engine looks for conflicts.
    own = [one.id for one in intended.affinity_groups if one.cluster == group.cluster]
    counted = {vm for one in own for vm in intended.group_vms[one]}
    vms = tuple(replace(vm, cluster=group.cluster) if vm.id in counted else vm for vm in intended.vms)
    for conflict in clashes_of(replace(intended, vms=vms), group):
        text, refused = _conflict_sentence(intended, conflict, group), conflict.type in _REFUSED
        if group.id in conflict.groups:
            yield refused, text
        elif refused:
            yield True, f"{_THERE_ALREADY}: {text}"


def _conflict_sentence(intended: Snapshot, conflict: Conflict, group: AffinityGroup) -> str:
    groups = sorted(conflict.groups, key=lambda one: (one != group.id, intended.group_by_id[one].name))
    vms = conflict.negative_vms or conflict.vms
    parts = [
        f"groups {', '.join(intended.group_by_id[one].name for one in groups)}",
        f"VMs {', '.join(vm_name(vm, intended) for vm in vms)}",
    ]
    if conflict.hosts:
        parts.append(f"hosts {', '.join(host_name(host, intended) for host in conflict.hosts)}")
    return f"{MEANINGS[conflict.type]} ({'; '.join(parts)})"


# -- In which order the engine lets groups become what they are to be: it checks each among all others.
class GroupOrder(NamedTuple):
    """Groups in an order that the engine accepts, and what it would not accept in any."""

    groups: tuple[AffinityGroup, ...]
    #: Each with the group's name.
    refusals: tuple[str, ...]
    warnings: tuple[str, ...]


def in_order(
    snapshot: Snapshot, removed: Iterable[AffinityGroup], meant: Sequence[AffinityGroup]
) -> GroupOrder:
    """In an order that the engine accepts, after others are removed; new ones have ids of their own."""
    state = snapshot
    for group in removed:
        state = without_group(state, group.id)
    left, order = list(meant), []
    while left:
        found = [(group, judge(state, group)) for group in left]
        accepted = next((one for one, verdict in found if not (verdict.refusals or verdict.unchecked)), None)
        if accepted is None:
            refusals = (
                f"{one.name}: {text}"
                for one, verdict in found
                for text in (*verdict.refusals, *verdict.unchecked)
            )
            return GroupOrder((), tuple(refusals), ())
        state = with_group(state, accepted)
        order.append(accepted)
        left.remove(accepted)
    warnings = (f"{one.name}: {text}" for one in order for text in judge(state, one).warnings)
    return GroupOrder(tuple(order), (), tuple(warnings))


# -- What became of affinity groups: they were added, changed or removed.
Outcome = Literal["added", "changed", "removed", "unchanged"]


class GroupChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="group_change"):
    """An affinity group that was added, changed or removed."""

    #: Null where there was none; one that would be added in a dry run has no id.
    before: DescribedGroup | None
    #: Null where there is none any more.
    after: DescribedGroup | None
    outcome: Outcome
    group: DescribedGroup
    warnings: tuple[str, ...]


class GroupsChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="groups_change"):
    """Affinity groups that were added, changed and removed, by their names."""

    #: The groups that are not the same afterwards.
    before: tuple[DescribedGroup, ...]
    after: tuple[DescribedGroup, ...]
    added: tuple[str, ...]
    edited: tuple[str, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]
    warnings: tuple[str, ...]


class GroupOutcome(NamedTuple):
    """A group as it is now, or was when it was removed, and the same before and afterwards."""

    group: DescribedGroup
    before: DescribedGroup | None
    after: DescribedGroup | None

    @property
    def outcome(self) -> Outcome:
        if self.before == self.after:
            return "unchanged"
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


def group_change(one: GroupOutcome, warnings: Iterable[str], *, dry_run: bool) -> GroupChangeDocument:
    return GroupChangeDocument(
        changed=one.before != one.after,
        dry_run=dry_run,
        before=one.before,
        after=one.after,
        outcome=one.outcome,
        group=one.group,
        warnings=tuple(warnings),
    )


def groups_change(
    groups: Sequence[GroupOutcome], warnings: Iterable[str] = (), *, dry_run: bool
) -> GroupsChangeDocument:
    touched = [one for one in groups if one.before != one.after]

    def named(outcome: Outcome) -> tuple[str, ...]:
        return tuple(one.group.name for one in groups if one.outcome == outcome)

    return GroupsChangeDocument(
        changed=bool(touched),
        dry_run=dry_run,
        before=tuple(one.before for one in touched if one.before is not None),
        after=tuple(one.after for one in touched if one.after is not None),
        added=named("added"),
        edited=named("changed"),
        removed=named("removed"),
        unchanged=named("unchanged"),
        warnings=tuple(warnings),
    )


def change_text(answer: GroupChangeDocument) -> str:
    done = "left as it is:" if answer.outcome == "unchanged" else answer.outcome
    identity = f" ({answer.group.id})" if answer.group.id else ""
    tried = f"\n{DRY_RUN}" if answer.dry_run and answer.changed else ""
    return f"{done} affinity group {answer.group.name}{identity}{tried}"


def change_lines(answer: GroupsChangeDocument) -> Iterator[str]:
    for done, names in (("removed", answer.removed), ("added", answer.added), ("changed", answer.edited)):
        yield from (f"{done} affinity group {name}" for name in names)
    if not answer.changed:
        yield "Nothing to change."
    elif answer.dry_run:
        yield DRY_RUN
