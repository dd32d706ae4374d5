"""Affinity groups as they are configured, how each stands, and what differs between one and what is meant."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec.structs import replace

from ovirt_placement.answers.document import Columns, Document, Shown, Table, find, listed, table, too_many
from ovirt_placement.answers.question import (
    GROUPS,
    HOSTS,
    SOME_CLUSTERS,
    VMS,
    Parameter,
    Reads,
    Route,
    question,
)
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import AffinityGroup, AffinityLabel, AffinityRule, Cluster, Host, Snapshot, Vm
from ovirt_placement.model.names import Named, NamedCluster, NamedHost, NamedVm, named_cluster, named_vms
from ovirt_placement.model.record import Record, with_names
from ovirt_placement.model.yaml_files import Polarity
from ovirt_placement.rules.catalogue import find_violations

# -- The members of an affinity group, by the words that options and files have for them.
#: Of each member list of the model: its option and its word.
MEMBERS: Final = {
    "vms": ("vm", "VM"),
    "hosts": ("host", "host"),
    "vm_labels": ("vm_label", "affinity label"),
    "host_labels": ("host_label", "affinity label"),
}


def find_member(word: str, name: str, cluster: str, snapshot: Snapshot) -> Vm | Host | AffinityLabel:
    """The member that a word means: of the group's own cluster if there is one, else of any."""
    kind = MEMBERS[name][1]
    known = tuple(table_of(name, snapshot).values())
    own = [item for item in known if getattr(item, "cluster", cluster) == cluster]
    in_own = any(word in (item.id, item.name) for item in own)
    found: Vm | Host | AffinityLabel = find(word, kind, own if in_own else known)
    return found


def member_ids(words: Iterable[str], name: str, cluster: str, snapshot: Snapshot) -> tuple[str, ...]:
    return tuple(find_member(word, name, cluster, snapshot).id for word in words)


def table_of(name: str, snapshot: Snapshot) -> dict[str, Any]:
    """All that could be in a member list, by id."""
    if name == "vms":
        return snapshot.vm_by_id
    return snapshot.host_by_id if name == "hosts" else snapshot.label_by_id


MEMBER_WORDS = {"vms": "VM", "hosts": "host", "vm_labels": "VM label", "host_labels": "host label"}


# -- What differs between a group and what is to become of it, each in words, for the record of who did it.
def differences(before: AffinityGroup, after: AffinityGroup, snapshot: Snapshot) -> Iterator[str]:
    """The fields that change, and the members that come and go."""
    if before.name != after.name:
        yield f"name {after.name}"
    if before.priority != after.priority:
        yield f"priority {after.priority:g}"
    for word, was, rule in (
        ("VM", before.vms_rule, after.vms_rule),
        ("host", before.hosts_rule, after.hosts_rule),
    ):
        if was != rule:
            strength = f"{polarity_of(rule)}, {'hard' if rule.enforcing else 'soft'}"
            yield f"{word} rule {strength if rule.enabled else 'disabled'}"
    for field, word in MEMBER_WORDS.items():
        old, new, known = getattr(before, field), getattr(after, field), table_of(field, snapshot)
        for done, members, others in (("added", new, old), ("removed", old, new)):
            for member in members:
                if member not in others:
                    yield f"{word} {known[member].name if member in known else member} {done}"


def rule_of(polarity: str, *, enforcing: bool) -> AffinityRule:
    return AffinityRule(enabled=polarity != "disabled", positive=polarity == "positive", enforcing=enforcing)


def polarity_of(rule: AffinityRule) -> Polarity:
    return "disabled" if not rule.enabled else "positive" if rule.positive else "negative"


# -- An affinity group as it is configured.
class Member(Named, frozen=True):
    """A VM or a host of a group."""

    #: Its cluster, if it is another one than the group's.
    cluster: Named | None = None


class MemberLabel(Named, frozen=True, kw_only=True):
    """An affinity label, and the members that it brings."""

    members: tuple[Member, ...]


class Group(Record, frozen=True, omit_defaults=False, kw_only=True):
    """An affinity group."""

    id: str
    name: str
    cluster: NamedCluster
    priority: float
    vms_rule: AffinityRule
    hosts_rule: AffinityRule
    vms: tuple[Member, ...]
    hosts: tuple[Member, ...]
    vm_labels: tuple[MemberLabel, ...]
    host_labels: tuple[MemberLabel, ...]

    @property
    def enabled(self) -> bool:
        """Whether it asks for anything."""
        return self.vms_rule.enabled or self.hosts_rule.enabled


class DescribedGroup(Group, frozen=True, kw_only=True):
    """An affinity group, with its description."""

    description: str


def described_group(group: AffinityGroup, snapshot: Snapshot, description: str) -> DescribedGroup:
    """A group, with names and its description, which snapshots lack."""
    members = _all_members(group, snapshot)
    return with_names(DescribedGroup, group, snapshot, description=description, **members)


def _all_members(group: AffinityGroup, snapshot: Snapshot) -> dict[str, Any]:
    def members(ids: Iterable[str], known: Mapping[str, Vm] | Mapping[str, Host]) -> tuple[Member, ...]:
        return tuple(_member_of(group, one, known.get(one), snapshot) for one in ids)

    def labels(ids: Iterable[str], field: str, known: Any) -> Iterator[MemberLabel]:
        """One that is not known has its id for a name, and no members."""
        for one in ids:
            label = snapshot.label_by_id.get(one)
            brought = members(getattr(label, field, ()), known)
            yield MemberLabel(one, one if label is None else label.name, members=brought)

    vms, hosts = snapshot.vm_by_id, snapshot.host_by_id
    return {
        "vms": members(group.vms, vms),
        "hosts": members(group.hosts, hosts),
        "vm_labels": tuple(labels(group.vm_labels, "vms", vms)),
        "host_labels": tuple(labels(group.host_labels, "hosts", hosts)),
    }


def _member_of(group: AffinityGroup, member: str, known: Vm | Host | None, snapshot: Snapshot) -> Member:
    """Labels and unchecked commands let members of other clusters in."""
    if known is None:
        return Member(member, member)
    own = known.cluster == group.cluster
    return Member(member, known.name, None if own else named_cluster(known.cluster, snapshot))


# -- How each affinity group stands: where its members run, and which of its rules that violates.
State = Literal["violated", "satisfied", "disabled"]


class ViolatedRule(Record, frozen=True):
    """A rule of the group that is violated now."""

    #: What it asks of its VMs: "together", "apart", "on its hosts" or "off its hosts".
    asks: str
    hard: bool
    #: Members that violate it.
    offenders: tuple[Named, ...]
    #: Groups that shared members tie to this one: where it is violated only together with them.
    only_with: tuple[Named, ...] = ()


class RunningMember(Record, frozen=True):
    vm: NamedVm
    host: NamedHost


class ListedGroup(Group, frozen=True, omit_defaults=False, kw_only=True):
    """An affinity group, and how it stands."""

    #: Its state in words.
    sentence: str
    violated: bool
    violated_rules: tuple[ViolatedRule, ...]
    #: Members that run, those that a label brings included.
    running: tuple[RunningMember, ...]

    @property
    def size(self) -> int:
        """How many VMs are members, those that a label brings included."""
        brought = (one.id for label in self.vm_labels for one in label.members)
        return len({*(one.id for one in self.vms), *brought})

    @property
    def state(self) -> State:
        return "violated" if self.violated else "satisfied" if self.enabled else "disabled"


class GroupsListDocument(Document, frozen=True, kw_only=True, tag="groups_list"):
    """Affinity groups, and how they stand."""

    groups: tuple[ListedGroup, ...]


@question(
    "groups list",
    "affinity groups, their state and members",
    """\
List affinity groups, violated ones first, with the hosts of running members. Of many, --all lists each with
all members.
""",
    examples="""\
  ovirt-placement groups list --cluster blue --violated
  ovirt-placement groups list --vm web1 --all
""",
    text=lambda answer, shown: _groups_text(answer, shown),
    reads=Reads.GROUPS,
    measured=Measured.NOTHING,
    routes=(Route("/groups", "affinity groups, and how they stand"),),
)
def groups_list(
    snapshot: Snapshot,
    clusters: Annotated[Iterable[Cluster], SOME_CLUSTERS],
    *,
    vm: Annotated[str | None, Parameter("only groups of this VM", "VM", VMS)] = None,
    host: Annotated[
        str | None, Parameter("only groups that list this host, or have a VM on it", "HOST", HOSTS)
    ] = None,
    group: Annotated[str | None, Parameter("only this group", "GROUP", GROUPS)] = None,
    violated: Annotated[bool, Parameter("only violated groups")] = False,
) -> GroupsListDocument:
    """The groups of these clusters, or of them those with this VM, or this host or a VM on it."""
    rules = {cluster.id: _violated_rules(snapshot, cluster.id) for cluster in clusters}
    return GroupsListDocument(
        groups=tuple(
            _listed(one, rules[one.cluster].get(one.id, ()), snapshot)
            for one in snapshot.affinity_groups
            if one.cluster in rules
            and group in (None, one.id)
            and (vm is None or vm in snapshot.group_vms[one.id])
            and (host is None or _is_on(host, one, snapshot))
            and (not violated or one.id in rules[one.cluster])
        )
    )


def _is_on(host: str, group: AffinityGroup, snapshot: Snapshot) -> bool:
    """Whether a group lists a host, or one of its VMs runs there."""
    vms = (snapshot.vm_by_id.get(vm) for vm in snapshot.group_vms[group.id])
    return host in snapshot.group_hosts[group.id] or any(vm is not None and vm.host == host for vm in vms)


def _listed(group: AffinityGroup, rules: Collection[ViolatedRule], snapshot: Snapshot) -> ListedGroup:
    members = [snapshot.vm_by_id[vm] for vm in snapshot.group_vms[group.id] if vm in snapshot.vm_by_id]
    running = tuple((vm.id, vm.host) for vm in members if vm.host is not None)
    others = {"violated": bool(rules), "violated_rules": rules, "running": running, "sentence": ""}
    found = with_names(ListedGroup, group, snapshot, **others, **_all_members(group, snapshot))
    return replace(found, sentence=", ".join(_state(found)))


def _violated_rules(snapshot: Snapshot, cluster: str) -> dict[str, list[ViolatedRule]]:
    """By group."""
    violated: dict[str, list[ViolatedRule]] = defaultdict(list)
    for violation in find_violations(snapshot, cluster):
        offenders = named_vms(violation.offenders, snapshot)
        for group in violation.groups:
            tied = [other for other in violation.groups if other != group and group not in violation.violated]
            only_with = tuple(Named(other, snapshot.group_by_id[other].name) for other in tied)
            violated[group].append(
                ViolatedRule(violation.constraint.asks, violation.hard, offenders, only_with)
            )
    return violated


# -- in words
def _groups_text(answer: GroupsListDocument, shown: Shown) -> Iterator[str | Table]:
    """Of many groups how many stand how, and those that are violated first."""
    groups: Sequence[ListedGroup] = answer.groups
    if not groups:
        some = " that was asked about" if shown.asks_for("clusters", "vm", "host", "group") else ""
        if shown.words.get("violated"):
            yield f"No affinity group{some} is violated."
        else:
            yield "No such affinity groups." if some else "No affinity groups."
        return
    if not shown.whole and too_many(groups):
        counts = Counter(one.state for one in groups)
        states: tuple[State, ...] = ("violated", "satisfied", "disabled")
        many = ", ".join(f"{counts[word]} {word}" for word in states if counts[word])
        yield f"{len(groups)} affinity groups: {many}\n"
    groups = sorted(groups, key=lambda one: not one.violated)
    columns = dict(_columns(shown.whole))
    if len({one.cluster.id for one in groups}) == 1:  # it takes no room from names
        del columns["cluster"]
    yield table(groups, columns)


def _columns(whole: bool) -> Columns:
    def vms(group: ListedGroup) -> str:
        running = {at.vm.id: at.host.name for at in group.running}
        return "\n".join(_lines(group.vms, group.vm_labels, running, whole))

    return {
        "group": lambda one: one.name,
        "cluster": lambda one: one.cluster.name,
        "state": lambda one: "\n".join(_state(one)),
        "priority": lambda one: f"{one.priority:g}",
        "VM rule": lambda one: _rule(one.vms_rule),
        "VMs": vms,
        "host rule": lambda one: _rule(one.hosts_rule),
        "hosts": lambda one: "\n".join(_lines(one.hosts, one.host_labels, {}, whole)),
    }


def _state(group: ListedGroup) -> Iterator[str]:
    if not group.violated:
        yield group.state
    for rule in group.violated_rules:
        tied = f" (with {', '.join(other.name for other in rule.only_with)})" if rule.only_with else ""
        yield f"violated: {rule.asks}{tied}"


def _rule(rule: AffinityRule) -> str:
    return f"{polarity_of(rule)}{', enforcing' if rule.enabled and rule.enforcing else ''}"


def _lines(
    members: Iterable[Member], labels: Iterable[MemberLabel], hosts: Mapping[str, str], whole: bool
) -> Iterator[str]:
    """The members, and on a line each the labels with theirs; VMs with the hosts on which they run."""
    yield from (_member(member, hosts) for member in members)
    for label in labels:
        brought = [_member(one, hosts) for one in label.members]
        yield f"label {label.name}: {listed(brought, whole=whole) or 'none'}"


def _member(member: Member, hosts: Mapping[str, str]) -> str:
    place = f" on {hosts[member.id]}" if member.id in hosts else ""
    elsewhere = "" if member.cluster is None else f" (of cluster {member.cluster.name})"
    return f"{member.name}{place}{elsewhere}"
