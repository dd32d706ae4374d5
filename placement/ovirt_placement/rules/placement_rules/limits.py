"""Limits of how much shares a host or a failure domain, or a set of hosts, and who alone may run there.

At most k per host, or per failure domain: none runs more than `most` members. A host that is in no domain is
one by itself. Source: Nova's `max_server_per_host`.

Set against set: no host runs members of both sets; members of one set may share hosts. A VM that is in both
sets counts for the first. Source: BtrPlace's Split.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Final

from ovirt_placement.lookups import Earlier, continued
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.names import counted
from ovirt_placement.rules.elements.placement import Placement
from ovirt_placement.rules.elements.rule import Allowed, AtMost, Sum
from ovirt_placement.rules.elements.verdict import ReasonKind
from ovirt_placement.rules.placement_rules.kind import (
    NO_VMS,
    Against,
    Judge,
    PlacementConstraint,
    PlacementKind,
    Resolved,
)

#: By place and set, the VMs that are there.
_There = Mapping[str, Mapping[str, list[str]]]


class Limited(PlacementConstraint, frozen=True, kw_only=True):
    """Invariant: on each place VMs of at most `form.most` sets. A subclass says which places and sets."""

    refusal: ClassVar[ReasonKind]

    form: AtMost

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members on places with too many."""
        there = self._there({vm: (host,) for vm, host in self.running(placement)})
        place = self.form.place
        return tuple(vm for vm, host in self.running(placement) if len(there[place(host)]) > self.form.most)

    def surplus(self, placement: Placement) -> int:
        """From each place the smallest sets that are too many."""
        there = self._there({vm: (host,) for vm, host in self.running(placement)})
        return sum(self.form.excess(map(len, sets.values())) for sets in there.values())

    def judge(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NO_VMS) -> Judge:
        """Against places that others have filled; one that migrates counts at both ends."""
        limit, own = self.form, self.form.own_set(vm)
        there = self._others(vm, placement, unconfirmed)

        def against(host: str) -> Against | None:
            sets = there.get(limit.place(host), {})
            if len(sets) - (own in sets) < limit.most:
                return None
            others = tuple(peer for one, peers in sets.items() if one != own for peer in peers)
            return Against(self.refusal, limit.most, others)

        return against

    def more_excess(self, vm: str, placement: Placement) -> Callable[[str], int]:
        """Only the place that a member leaves and the one that it comes to count."""
        there, own, limit = self._others(vm, placement, NO_VMS), self.form.own_set(vm), self.form

        def by_one(place: str) -> int:
            """By how much the excess of a place is larger with the member than without it."""
            sizes = {name: len(vms) for name, vms in there.get(place, {}).items()}
            return limit.excess({**sizes, own: sizes.get(own, 0) + 1}.values()) - limit.excess(sizes.values())

        source = placement.runs_on(vm)
        left = None if source is None else limit.place(source)
        less = 0 if left is None else by_one(left)
        return lambda host: 0 if limit.place(host) == left else by_one(limit.place(host)) - less

    def _others(self, vm: str, placement: Placement, unconfirmed: frozenset[str]) -> _There:
        peers = (peer for peer in self.vms if peer != vm and peer not in unconfirmed)
        return self._there({peer: placement.occupied(peer) for peer in peers})

    def place(self, host: str) -> str:
        return self.form.place(host)

    def _there(self, hosts_of: Mapping[str, tuple[str, ...]]) -> _There:
        found: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for vm, hosts in hosts_of.items():
            for place in dict.fromkeys(map(self.form.place, hosts)):
                found[place][self.form.own_set(vm)].append(vm)
        return found


HOST_IS_FULL = ReasonKind(
    "host_is_full", "{group} allows {number:g} of its VMs on a host, and this host is full", veto=True
)


class AtMostPerHost(Limited, frozen=True, kw_only=True):
    asks: ClassVar[str] = "few on each host"
    refusal: ClassVar[ReasonKind] = HOST_IS_FULL


def _too_few(found: Resolved, hosts: frozenset[str]) -> Iterator[str]:
    """A host in no domain is one by itself."""
    if found.rule.kind == AT_MOST_PER_DOMAIN.name:
        places = len({found.domain_of.get(host, host) for host in hosts})
        where = f"in each of {counted(places, 'failure domain')}"
    else:
        places, where = len(hosts), f"on each of {counted(len(hosts), 'host')}"
    most = found.rule.most or 0
    if len(found.vms) > most * places:
        yield f"{counted(len(found.vms), 'VM')} cannot run with at most {most} {where}"


AT_MOST_PER_HOST = PlacementKind(
    name="at_most_per_host",
    summary="at most `most` of the VMs on a host",
    needs=("vms", "most"),
    constraint=AtMostPerHost,
    form=lambda snapshot, found: AtMost(found.rule.most or 0),
    impossible=_too_few,
)


DOMAIN_IS_FULL = ReasonKind(
    "domain_is_full",
    "{group} allows {number:g} of its VMs in a failure domain, and that of this host is full",
    veto=True,
)


class AtMostPerDomain(Limited, frozen=True, kw_only=True):
    asks: ClassVar[str] = "few in each failure domain"
    refusal: ClassVar[ReasonKind] = DOMAIN_IS_FULL


AT_MOST_PER_DOMAIN = PlacementKind(
    name="at_most_per_domain",
    summary="at most `most` of the VMs in a failure domain",
    needs=("vms", "most"),
    in_domains=True,
    constraint=AtMostPerDomain,
    form=lambda snapshot, found: AtMost(found.rule.most or 0, place_of=found.domain_of),
    impossible=_too_few,
)


OTHER_SET_HERE = ReasonKind("other_set_here", "{group} keeps VM {vm} here and this VM apart", veto=True)


class Separate(Limited, frozen=True, kw_only=True):
    asks: ClassVar[str] = "apart from the other set"
    refusal: ClassVar[ReasonKind] = OTHER_SET_HERE


SEPARATE = PlacementKind(
    name="separate",
    summary="no host with VMs of both sets",
    needs=("vms", "other_vms"),
    concerned=lambda snapshot, found: tuple(dict.fromkeys((*found.vms, *found.other_vms))),
    constraint=Separate,
    form=lambda snapshot, found: AtMost(
        1, dict.fromkeys(found.other_vms, "second") | dict.fromkeys(found.vms, "first")
    ),
)


HOSTS_ARE_FULL = ReasonKind(
    "hosts_are_full",
    "{group} lets {number:g} in sum run on its hosts, and this VM would be too much",
    veto=True,
)

#: What can be counted of a VM: each is one, or has so much.
COUNTED: Final = ("vms", "vcpus", "memory_mb")


class Capacity(PlacementConstraint, frozen=True, kw_only=True):
    """Invariant: the members that run on the hosts count `most` in sum at the most.

    What is counted are VMs, their vCPUs, or their memory in MiB: what licences are sold by. Without VMs the
    rule is about all of the cluster. Source: BtrPlace's RunningCapacity and ResourceCapacity.
    """

    asks: ClassVar[str] = "within the capacity of their hosts"

    form: Sum

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """All members on the hosts, where they are too much."""
        there = self._there(placement)
        return tuple(vm for vm in self.vms if vm in there) if sum(there.values()) > self.form.most else ()

    def surplus(self, placement: Placement) -> int:
        """The largest first."""
        there = self._there(placement)
        excess, leaving = sum(there.values()) - self.form.most, 0
        for amount in sorted(there.values(), reverse=True):
            if excess <= 0:
                break
            excess, leaving = excess - amount, leaving + 1
        return leaving

    def excess(self, placement: Placement) -> int:
        """In what is counted."""
        return max(0, sum(self._there(placement).values()) - self.form.most)

    def judge(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NO_VMS) -> Judge:
        """Against the hosts, from elsewhere; one that migrates counts as long as it holds one of them."""
        if placement.runs_on(vm) in self.form.hosts:
            return lambda host: None
        peers = {
            peer
            for peer in placement.holding(self.form.hosts, self.vms)
            if peer != vm and peer not in unconfirmed and peer in self.form.amounts
        }
        full = sum(self.form.amounts[peer] for peer in peers) + self.form.amounts[vm] > self.form.most

        def against(host: str) -> Against | None:
            if not full or host not in self.form.hosts:
                return None
            return Against(HOSTS_ARE_FULL, self.form.most, tuple(peer for peer in self.vms if peer in peers))

        return against

    def place(self, host: str) -> bool:
        return host in self.form.hosts

    def _there(self, placement: Placement) -> dict[str, int]:
        found = {vm for vm in placement.holding(self.form.hosts, self.vms) if vm in self.form.amounts}
        there = (vm for vm in found if placement.runs_on(vm) in self.form.hosts)
        return {vm: self.form.amounts[vm] for vm in there}


def _amount(vm: Vm, counted: str) -> int:
    return 1 if counted == "vms" else int(getattr(vm, counted))


def _concerned(snapshot: Snapshot, found: Resolved) -> tuple[str, ...]:
    return found.vms if found.rule.vms else tuple(_amounts_of(snapshot, found))


def _amounts_of(snapshot: Snapshot, found: Resolved) -> Mapping[str, int]:
    return _amounts(snapshot, found.cluster, found.vms if found.rule.vms else None, found.rule.counted)


@continued
def _amounts(
    snapshot: Snapshot,
    earlier: Earlier | None,
    cluster: str | None,
    vms: tuple[str, ...] | None,
    counted: str,
) -> Mapping[str, int]:
    """What each of these VMs brings, or of all of the cluster, by id: the same wherever they run.

    A failure is judged in a thousand states, and each host of a cluster may have a rule of its own.
    """

    def brings(vm: Vm | None) -> tuple[str, int] | None:
        return None if vm is None else (vm.cluster, _amount(vm, counted))

    if earlier is not None and earlier.exchanged is not None:
        before = earlier.snapshot.vm_by_id
        if all(vm and brings(vm) == brings(before.get(name)) for name, vm in earlier.exchanged.items()):
            return _amounts(earlier.snapshot, cluster, vms, counted)
    if vms is None:
        vms = tuple(sorted(vm.id for vm in snapshot.vms if vm.cluster == cluster))
    return {vm: _amount(snapshot.vm_by_id[vm], counted) for vm in vms}


CAPACITY = PlacementKind(
    name="capacity",
    summary="at most `most` VMs, vCPUs or MiB (`counted`) on all of the hosts together",
    needs=("hosts", "most"),
    takes=("vms", "counted"),
    concerned=_concerned,
    constraint=Capacity,
    form=lambda snapshot, found: Sum(found.hosts, found.rule.most or 0, _amounts_of(snapshot, found)),
)


HOST_IS_EXCLUSIVE = ReasonKind("host_is_exclusive", "{group} keeps this host for other VMs", veto=True)


class ExclusiveHosts(PlacementConstraint, frozen=True, kw_only=True):
    """Invariant: no VM but the members runs on the hosts; members may run elsewhere, too.

    `vms` are those that must not be there: all others of the cluster. Source: BtrPlace's Lonely, of hosts.
    """

    asks: ClassVar[str] = "off exclusive hosts"

    form: Allowed

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        return tuple(vm for vm, host in self.running(placement) if not self.form.allows(host))

    def place(self, host: str) -> bool:
        return self.form.allows(host)

    def judge(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NO_VMS) -> Judge:
        return lambda host: None if self.form.allows(host) else Against(HOST_IS_EXCLUSIVE)


def _others(snapshot: Snapshot, found: Resolved) -> tuple[str, ...]:
    members = frozenset(found.vms)
    others = (vm.id for vm in snapshot.vms if vm.cluster == found.cluster and vm.id not in members)
    return tuple(sorted(others))


EXCLUSIVE_HOSTS = PlacementKind(
    name="exclusive_hosts",
    summary="no VMs but these on the hosts",
    needs=("vms", "hosts"),
    concerned=_others,
    constraint=ExclusiveHosts,
    form=lambda snapshot, found: Allowed(found.hosts, positive=False),
)
