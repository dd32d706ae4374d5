"""What all kinds of placement rules have in common: whom a rule is about, and what speaks against hosts.

VMs and hosts are looked up in each state, so that who comes later joins. One kind says nothing of where VMs
run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import attrgetter
from typing import ClassVar

from ovirt_placement.lookups import Earlier, continued
from ovirt_placement.model import Host, PlacementRule, Snapshot, Vm
from ovirt_placement.model.names import WILDCARD, UnmatchedName, begins, called, fits, unmatched
from ovirt_placement.model.record import GROUP, LABEL, SEARCH, TAG, MemberSearch, Record, SearchOf
from ovirt_placement.model.snapshot import HOST_TAGS, VM_DETAILS, Part, grouped
from ovirt_placement.rules.elements.placement import Arriving, Placement
from ovirt_placement.rules.elements.rule import Constraint, Form
from ovirt_placement.rules.elements.verdict import ReasonKind, unread

_SEVERAL = (TAG, GROUP, LABEL, SEARCH)


class Resolved(Record, frozen=True):
    """A rule with the ids of what it names."""

    rule: PlacementRule
    #: The cluster's id; None if there is no such cluster.
    cluster: str | None
    vms: tuple[str, ...] = ()
    other_vms: tuple[str, ...] = ()
    hosts: frozenset[str] = frozenset()
    #: The failure domain of each host that is in one.
    domain_of: Mapping[str, str] = {}
    #: What it names that is not there.
    unmatched: tuple[UnmatchedName, ...] = ()
    #: What it names that is not clear, in sentences.
    unclear: tuple[str, ...] = ()
    #: Whether the engine has found members for all of its searches: else it is not in force.
    searches_answered: bool = True
    #: What has not been read yet that says who it is about: until then it is not judged.
    unknown: tuple[str, ...] = ()

    @property
    def problems(self) -> tuple[str, ...]:
        """All that is wrong with what it names, in sentences."""
        return (*(one.what for one in self.unmatched), *self.unclear)


@continued
def resolved_rules(snapshot: Snapshot, earlier: Earlier | None) -> tuple[Resolved, ...]:
    """Look up all rules of a snapshot."""
    if earlier is not None and _nothing_else_is_named(snapshot, earlier):
        return resolved_rules(earlier.snapshot)
    names = _Names(snapshot)
    return tuple(_resolved(names, rule) for rule in snapshot.placement_rules)


def _nothing_else_is_named(snapshot: Snapshot, earlier: Earlier) -> bool:
    """Whether every word means the same in both: then VMs only moved, or hosts have other figures."""
    before = earlier.snapshot
    frame = ("placement_rules", "clusters", "affinity_groups", "affinity_labels", "member_searches")
    if before.unread != snapshot.unread or any(
        getattr(before, part) is not getattr(snapshot, part) for part in frame
    ):
        return False
    if not snapshot.placement_rules:
        return True
    if list(map(_host_names, before.hosts)) != list(map(_host_names, snapshot.hosts)):
        return False
    vms, known = snapshot.vm_by_id, before.vm_by_id
    changed = earlier.differing(snapshot)
    return all(vm in vms and vm in known and _vm_names(vms[vm]) == _vm_names(known[vm]) for vm in changed)


_host_names = attrgetter("id", "name", "cluster", "tags")
_vm_names = attrgetter("name", "cluster", "tags")


def _resolved(names: _Names, rule: PlacementRule) -> Resolved:
    clusters = called(rule.cluster, names.snapshot.clusters)
    faults = _Faults(f"placement rule {rule.name}")
    if len(clusters) != 1:
        faults.refuse("cluster", rule.cluster, clusters, (one.name for one in names.snapshot.clusters))
        return Resolved(rule, None, unmatched=tuple(faults.unmatched), unclear=tuple(faults.unclear))
    cluster = clusters[0].id
    hosts = frozenset(names.meant(names.hosts, rule.hosts, cluster, faults))
    return Resolved(
        rule,
        cluster,
        tuple(names.meant(names.vms, rule.vms, cluster, faults)),
        tuple(names.meant(names.vms, rule.other_vms, cluster, faults)),
        hosts,
        names.domains(rule, cluster, faults),
        tuple(faults.unmatched),
        tuple(faults.unclear),
        all(names.found_by(*search) is not None for search in rule.searches),
        tuple(names.unknown(rule)),
    )


class _Faults:
    """What is found to be wrong with the names of a rule."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.unmatched: list[UnmatchedName] = []
        self.unclear: list[str] = []

    def miss(self, kind: str, word: str, known: Iterable[str] = ()) -> None:
        self.unmatched.append(unmatched(self._where, kind, word, known, in_rule=True))

    def refuse(self, kind: str, word: str, found: Sequence[object], known: Iterable[str]) -> None:
        """Take note of a word for one thing that means none, or several."""
        if found:
            self.unclear.append(f"there are {len(found)} of the name {word} for a {kind}: name one by its id")
        else:
            self.miss(kind, word, known)


@dataclass(frozen=True, eq=False)
class _Kind:
    """VMs or hosts: what they are called, and where they are looked up."""

    noun: str
    of: SearchOf
    #: What says whether their tags have been read.
    tags: Part
    known: Mapping[str, Vm] | Mapping[str, Host]
    of_group: Mapping[str, tuple[str, ...]]


class _Names:
    """What words mean in a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.vms = _Kind("VM", "vms", VM_DETAILS, snapshot.vm_by_id, snapshot.group_vms)
        self.hosts = _Kind("host", "hosts", HOST_TAGS, snapshot.host_by_id, snapshot.group_hosts)
        self._by_tag: dict[_Kind, Mapping[str, Sequence[str]]] = {}

    def meant(self, kind: _Kind, words: Iterable[str], cluster: str, faults: _Faults) -> Iterable[str]:
        """Ids of those of the cluster, each once, in the order of the words; what is wrong is noted."""
        found: dict[str, None] = {}
        for word in words:
            if word.startswith(_SEVERAL):
                meant = self._several(kind, word, cluster, faults)
            else:
                here, others = self._called(kind, word, cluster)
                if len(here) != 1 and WILDCARD not in word:
                    faults.refuse(kind.noun, word, here, (one.name for one in others))
                    here = ()
                elif not here:
                    faults.miss(kind.noun, word)
                meant = [one.id for one in here]
            own = [one for one in meant if kind.known[one].cluster == cluster]
            if meant and not own:
                faults.miss(f"{kind.noun} of cluster {self._cluster(cluster)}", word)
            found.update(dict.fromkeys(own))
        return found

    def _called(
        self, kind: _Kind, word: str, cluster: str
    ) -> tuple[Sequence[Vm | Host], Iterable[Vm | Host]]:
        """Those of an id, a name or a pattern, VMs in the cluster alone; and whom a word could have meant."""
        if kind is self.hosts:
            return called(word, self.snapshot.hosts), self.snapshot.hosts
        others = self._vms_of.get(cluster, ())
        fitting = [vm for vm in others if fits(word, vm.name)] if WILDCARD in word else ()
        return self._vms_called.get((cluster, word)) or fitting, others

    def domains(self, rule: PlacementRule, cluster: str, faults: _Faults) -> Mapping[str, str]:
        """The domain of each host of the cluster: those that are listed, then those that tags name."""
        listed = [(one.name, self.meant(self.hosts, one.hosts, cluster, faults)) for one in rule.domains]
        members = self.snapshot.hosts_of_cluster.get(cluster, ())
        tagged = dict(sorted(grouped((tag, host.id) for host in members for tag in host.tags).items()))
        found: dict[str, str] = {}
        for prefix in rule.domain_tags:
            if HOST_TAGS not in self.snapshot.unread and not any(begins(prefix, tag) for tag in tagged):
                faults.miss(f"tag of a host of cluster {self._cluster(cluster)}", f"{prefix}*", tagged)
        ours = [
            (tag, own) for tag, own in tagged.items() if any(begins(one, tag) for one in rule.domain_tags)
        ]
        for name, hosts in (*listed, *ours):
            for host in hosts:
                before = found.setdefault(host, name)
                if before != name:
                    faults.unclear.append(
                        f"host {self.snapshot.host_by_id[host].name} is in two domains, {before} and {name}"
                    )
        if (rule.domains or rule.domain_tags) and not found and not self.unknown(rule):
            faults.unclear.append(f"no host of cluster {self._cluster(cluster)} is in a domain")
        return found

    def unknown(self, rule: PlacementRule) -> list[str]:
        """What has not been read that says who a rule is about."""
        parts: list[Part] = [HOST_TAGS] * rule.names_host_tags + [VM_DETAILS] * rule.names_vm_tags
        lacking = [*unread(self.snapshot, *parts)] if parts else []
        if any(search not in self._searches for search in rule.searches):
            lacking.append("a search has not been answered yet")
        return lacking

    def _several(self, kind: _Kind, word: str, cluster: str, faults: _Faults) -> Sequence[str]:
        prefix, colon, name = word.partition(":")
        prefix += colon
        found: list[str] = []
        if prefix == SEARCH:
            known = self._searches.get((kind.of, name))
            problem = "the engine has not answered it yet" if known is None else known.problem
            if problem:
                faults.unclear.append(f"{SEARCH}{name}: {problem}")
            found += self.found_by(kind.of, name) or ()
        elif prefix == TAG:
            found += [one for tag, ids in self._tagged(kind).items() if fits(name, tag) for one in ids]
        elif prefix == GROUP:
            found += [one for group in self._groups(name, cluster) for one in kind.of_group[group]]
        else:
            labels = called(name, self.snapshot.affinity_labels)
            found += [one for label in labels for one in (label.vms if kind is self.vms else label.hosts)]
        found = [one for one in dict.fromkeys(found) if one in kind.known]
        late = prefix == TAG and kind.tags in self.snapshot.unread
        unanswered = prefix == SEARCH and self.found_by(kind.of, name) is None
        if not found and not late and not unanswered:
            faults.miss(kind.noun, word)
        return found

    def _groups(self, name: str, cluster: str) -> list[str]:
        """The one affinity group of this id or name, that of the cluster first; of a pattern, all."""
        groups = self.snapshot.affinity_groups
        found = called(name, (one for one in groups if one.cluster == cluster)) or called(name, groups)
        return [one.id for one in found] if len(found) == 1 or WILDCARD in name else []

    def found_by(self, of: SearchOf, text: str) -> tuple[str, ...] | None:
        """Who a search finds, in any cluster; None as long as the engine has not answered it."""
        known = self._searches.get((of, text))
        return None if known is None else known.found

    def _cluster(self, cluster: str) -> str:
        return self.snapshot.cluster_by_id[cluster].name

    @cached_property
    def _searches(self) -> Mapping[tuple[str, str], MemberSearch]:
        return {(one.of, one.text): one for one in self.snapshot.member_searches}

    @cached_property
    def _vms_of(self) -> Mapping[str, Sequence[Vm]]:
        return grouped((vm.cluster, vm) for vm in self.snapshot.vms)

    @cached_property
    def _vms_called(self) -> Mapping[tuple[str, str], Sequence[Vm]]:
        """VMs by cluster and name, and by cluster and id, which comes first."""
        named = grouped(((vm.cluster, vm.name), vm) for vm in self.snapshot.vms)
        return {**named, **{(vm.cluster, vm.id): (vm,) for vm in self.snapshot.vms}}

    def _tagged(self, kind: _Kind) -> Mapping[str, Sequence[str]]:
        if kind not in self._by_tag:
            self._by_tag[kind] = grouped(
                (tag, one) for one in sorted(kind.known) for tag in kind.known[one].tags
            )
        return self._by_tag[kind]


NO_VMS: frozenset[str] = frozenset()


class Against(Record, frozen=True):
    """What speaks against a host."""

    kind: ReasonKind
    number: float | None = None
    #: Other VMs that make it so.
    vms: tuple[str, ...] = ()


#: What speaks against each host; None where nothing does.
Judge = Callable[[str], Against | None]


class PlacementConstraint(Constraint, frozen=True, kw_only=True):
    """What a placement rule asks; `groups` holds the id of the rule alone."""

    family: ClassVar[str] = "placement_rules"
    positive: ClassVar[bool] = False
    engine_judges: ClassVar[bool] = False

    form: Form
    #: Whether migrations must not violate it either; otherwise it is repaired afterwards.
    continuous: bool = True

    @property
    def binding(self) -> bool:
        return self.hard and self.continuous

    def judge(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NO_VMS) -> Judge:
        """What speaks against hosts for a member, while all others stay where they are.

        Where members are that are `unconfirmed` is not known: they speak against no host.
        """
        raise NotImplementedError

    def company(self, vm: str, placement: Placement) -> Callable[[str], int]:
        """How many other members a host would have near it; the fewer the better."""
        return lambda host: 0

    def judge_step(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NO_VMS) -> Judge:
        """The same for one that migrates: what violates the rule no more than it is violated now is no harm.

        Where it is not known for certain where members are, or some are on their way, all counts.
        """
        judge = self.judge(vm, placement, unconfirmed)
        if placement.runs_on(vm) is None or not unconfirmed.isdisjoint(self.vms):
            return judge

        @cache
        def more_excess() -> Callable[[str], int] | None:
            """None where all counts; it takes a look at all members, and most hosts are not refused."""
            counts = self.keeps(placement) or placement.any_between_hosts(self.vms)
            return None if counts else self.more_excess(vm, placement)

        def against(host: str) -> Against | None:
            found = judge(host)
            more = None if found is None else more_excess()
            return found if more is None or more(host) > 0 else None

        return against

    def more_excess(self, vm: str, placement: Placement) -> Callable[[str], int]:
        """By how much `excess` grows if a member goes to a host; a look at all members for each place."""
        now, known = self.excess(placement), dict[Hashable, int]()

        def more(host: str) -> int:
            place = self.place(host)
            if place not in known:
                known[place] = self.excess(Arriving(placement, (vm,), host)) - now
            return known[place]

        return more

    def place(self, host: str) -> Hashable:
        """What is the same for hosts that are alike to the rule: those of a domain."""
        return host

    def admits(self, vm: str, host: str, placement: Placement) -> bool:
        return self.judge(vm, placement)(host) is None

    def lets(self, vm: str, host: str, placement: Placement) -> bool:
        return self.judge_step(vm, placement)(host) is None


@dataclass(frozen=True, kw_only=True)
class RuleKind:
    """One kind of rule."""

    name: str
    #: What it asks, in a line.
    summary: str
    #: Fields of a rule that it needs, and those that it may have besides them.
    needs: tuple[str, ...]
    takes: tuple[str, ...] = ()
    #: Whether it needs failure domains.
    in_domains: bool = False
    #: Whether it may be soft, or to be satisfied in the end only.
    weaker: bool = True


@dataclass(frozen=True, kw_only=True)
class PlacementKind(RuleKind):
    """One that asks where VMs run."""

    #: The VMs that it is about.
    concerned: Callable[[Snapshot, Resolved], tuple[str, ...]] = lambda snapshot, found: found.vms
    constraint: type[PlacementConstraint]
    #: The form of its constraint.
    form: Callable[[Snapshot, Resolved], Form]
    #: Why a rule cannot be satisfied on the hosts of its cluster however VMs run, in sentences.
    impossible: Callable[[Resolved, frozenset[str]], Iterable[str]] = lambda found, hosts: ()


RESTART_AFTER = RuleKind(
    name="restart_after",
    summary="after a failure, each of the VMs restarts after all of the other VMs",
    needs=("vms", "other_vms"),
    weaker=False,
)
