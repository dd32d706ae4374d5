"""Which VMs and hosts a placement rule is about: looked up in each state, so that who comes later joins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

from ovirt_placement.lookups.index import Earlier, continued
from ovirt_placement.model import Cluster, Host, PlacementRule, Snapshot, Vm
from ovirt_placement.model.placement_rules import GROUP, LABEL, SEARCH, TAG, MemberSearch, SearchOf
from ovirt_placement.model.record import Record

Named = TypeVar("Named", Vm, Host, Cluster)

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
    #: What it names that is not there, or not clear, in sentences.
    problems: tuple[str, ...] = ()
    #: Whether the engine has answered all of its searches: else nobody knows who it is about.
    members_known: bool = True


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
    if any(getattr(before, part) is not getattr(snapshot, part) for part in frame):
        return False
    if not snapshot.placement_rules:
        return True
    if list(map(_host_names, before.hosts)) != list(map(_host_names, snapshot.hosts)):
        return False
    vms, known = snapshot.vm_by_id, before.vm_by_id
    changed = earlier.differing(snapshot)
    return all(vm in vms and vm in known and _vm_names(vms[vm]) == _vm_names(known[vm]) for vm in changed)


def _host_names(host: Host) -> tuple[object, ...]:
    return host.id, host.name, host.cluster, host.tags


def _vm_names(vm: Vm) -> tuple[object, ...]:
    return vm.name, vm.cluster, vm.tags


def _resolved(names: _Names, rule: PlacementRule) -> Resolved:
    problems: list[str] = []
    clusters = _called(rule.cluster, names.snapshot.clusters)
    if len(clusters) != 1:
        problems.append(_unclear("cluster", rule.cluster, clusters))
        return Resolved(rule, None, problems=tuple(problems))
    cluster = clusters[0].id
    hosts = frozenset(names.hosts(rule.hosts, cluster, problems))
    return Resolved(
        rule,
        cluster,
        tuple(names.vms(rule.vms, cluster, problems)),
        tuple(names.vms(rule.other_vms, cluster, problems)),
        hosts,
        names.domains(rule, cluster, problems),
        tuple(problems),
        all(names.found_by(*search) is not None for search in rule.searches),
    )


class _Names:
    """What words mean in a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def vms(self, words: Iterable[str], cluster: str, problems: list[str]) -> Iterable[str]:
        """Ids of VMs of the cluster, each once, in the order of the words; what is wrong goes to the list."""
        found: dict[str, None] = {}
        for word in words:
            if word.startswith(_SEVERAL):
                meant = self._several_vms(word, problems)
            else:
                meant = self._one(word, "VM", self._vms_called.get((cluster, word), ()), problems)
            own = [vm for vm in meant if self.snapshot.vm_by_id[vm].cluster == cluster]
            if meant and not own:
                problems.append(f"{word} names no VM of cluster {self._cluster(cluster)}")
            found.update(dict.fromkeys(own))
        return found

    def hosts(self, words: Iterable[str], cluster: str, problems: list[str]) -> Iterable[str]:
        """The same of hosts."""
        found: dict[str, None] = {}
        for word in words:
            if word.startswith(_SEVERAL):
                meant = self._several_hosts(word, problems)
            else:
                meant = self._one(word, "host", _called(word, self.snapshot.hosts), problems)
            own = [host for host in meant if self.snapshot.host_by_id[host].cluster == cluster]
            if meant and not own:
                problems.append(f"{word} names no host of cluster {self._cluster(cluster)}")
            found.update(dict.fromkeys(own))
        return found

    def domains(self, rule: PlacementRule, cluster: str, problems: list[str]) -> Mapping[str, str]:
        """The domain of each host of the cluster: those that are listed, then those that tags name."""
        listed = [(one.name, self.hosts(one.hosts, cluster, problems)) for one in rule.domains]
        found: dict[str, str] = {}
        for name, hosts in (*listed, *self._tagged(rule.domain_tags, cluster)):
            for host in hosts:
                before = found.setdefault(host, name)
                if before != name:
                    problems.append(
                        f"host {self.snapshot.host_by_id[host].name} is in two domains, {before} and {name}"
                    )
        if (rule.domains or rule.domain_tags) and not found:
            problems.append(f"no host of cluster {self._cluster(cluster)} is in a domain")
        return found

    def _tagged(self, prefixes: Sequence[str], cluster: str) -> Iterator[tuple[str, list[str]]]:
        by_tag: defaultdict[str, list[str]] = defaultdict(list)
        for host in self.snapshot.hosts if prefixes else ():
            for tag in host.tags if host.cluster == cluster else ():
                if tag.startswith(tuple(prefixes)):
                    by_tag[tag].append(host.id)
        yield from sorted(by_tag.items())

    def _several_vms(self, word: str, problems: list[str]) -> Sequence[str]:
        known = self.snapshot.vm_by_id
        kind, name = _parted(word)
        found: Sequence[str]
        if kind == SEARCH:
            found = self._searched("vms", name, problems)
        elif kind == TAG:
            found = self._vms_tagged.get(name, ())
        elif kind == GROUP:
            groups = _called_group(name, self.snapshot)
            found = self.snapshot.group_vms[groups] if groups else ()
        else:
            labels = [label for label in self.snapshot.affinity_labels if name in (label.id, label.name)]
            found = labels[0].vms if labels else ()
        found = [vm for vm in found if vm in known]
        if not found and (kind != SEARCH or self.found_by("vms", name) is not None):
            problems.append(f"{word} names no VM")
        return found

    def _several_hosts(self, word: str, problems: list[str]) -> Sequence[str]:
        kind, name = _parted(word)
        found: Sequence[str]
        if kind == SEARCH:
            found = self._searched("hosts", name, problems)
        elif kind == TAG:
            found = [host.id for host in self.snapshot.hosts if name in host.tags]
        elif kind == GROUP:
            groups = _called_group(name, self.snapshot)
            found = self.snapshot.group_hosts[groups] if groups else ()
        else:
            labels = [label for label in self.snapshot.affinity_labels if name in (label.id, label.name)]
            found = labels[0].hosts if labels else ()
        found = [host for host in found if host in self.snapshot.host_by_id]
        if not found and (kind != SEARCH or self.found_by("hosts", name) is not None):
            problems.append(f"{word} names no host")
        return found

    def found_by(self, of: SearchOf, text: str) -> tuple[str, ...] | None:
        """Who a search finds, in any cluster; None as long as the engine has not answered it."""
        known = self._searches.get((of, text))
        return None if known is None else known.found

    def _searched(self, of: SearchOf, text: str, problems: list[str]) -> Sequence[str]:
        known = self._searches.get((of, text))
        problem = "the engine has not answered it yet" if known is None else known.problem
        if problem:
            problems.append(f"{SEARCH}{text}: {problem}")
        return self.found_by(of, text) or ()

    def _one(
        self, word: str, kind: str, called: Sequence[Vm] | Sequence[Host], problems: list[str]
    ) -> Sequence[str]:
        if len(called) != 1:
            problems.append(_unclear(kind, word, called))
            return ()
        return (called[0].id,)

    def _cluster(self, cluster: str) -> str:
        return self.snapshot.cluster_by_id[cluster].name

    @cached_property
    def _searches(self) -> Mapping[tuple[str, str], MemberSearch]:
        return {(one.of, one.text): one for one in self.snapshot.member_searches}

    @cached_property
    def _vms_called(self) -> Mapping[tuple[str, str], Sequence[Vm]]:
        """VMs by cluster and name, and by cluster and id, which comes first."""
        found: defaultdict[tuple[str, str], list[Vm]] = defaultdict(list)
        for vm in self.snapshot.vms:
            found[vm.cluster, vm.name].append(vm)
        ids: dict[tuple[str, str], list[Vm]] = {(vm.cluster, vm.id): [vm] for vm in self.snapshot.vms}
        return {**found, **ids}

    @cached_property
    def _vms_tagged(self) -> Mapping[str, Sequence[str]]:
        found: defaultdict[str, list[str]] = defaultdict(list)
        for vm in sorted(self.snapshot.vm_by_id):
            for tag in self.snapshot.vm_by_id[vm].tags:
                found[tag].append(vm)
        return found


def _parted(word: str) -> tuple[str, str]:
    kind, _, name = word.partition(":")
    return f"{kind}:", name


def _called(word: str, things: Iterable[Named]) -> list[Named]:
    """Those of this id, or else of this name."""
    every = list(things)
    return [one for one in every if one.id == word] or [one for one in every if one.name == word]


def _called_group(word: str, snapshot: Snapshot) -> str | None:
    """The id of the one affinity group of this id or name."""
    found = [group.id for group in snapshot.affinity_groups if word in (group.id, group.name)]
    return found[0] if len(found) == 1 else None


def _unclear(kind: str, word: str, called: Sequence[Vm] | Sequence[Host] | Sequence[Cluster]) -> str:
    if not called:
        return f"there is no {kind} {word}"
    return f"there are {len(called)} of the name {word} for a {kind}: name one by its id"
