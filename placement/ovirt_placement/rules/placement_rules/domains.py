"""Failure domains: how many members are in which, and the kinds of rules that ask for several, or for one."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cache
from typing import Any, ClassVar, NamedTuple

from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import counted
from ovirt_placement.rules.affinity.constraints import asks_by_vm, block_of
from ovirt_placement.rules.elements.assignment import NOTHING
from ovirt_placement.rules.elements.placement import Placement, off_gathering
from ovirt_placement.rules.elements.rule import AtLeast, Even, OnePlace
from ovirt_placement.rules.elements.verdict import ReasonKind
from ovirt_placement.rules.placement_rules.kind import (
    NO_VMS,
    Against,
    Judge,
    PlacementConstraint,
    PlacementKind,
    Resolved,
)

HOST_IN_NO_DOMAIN = ReasonKind("host_in_no_domain", "this host is in no failure domain of {group}", veto=True)


class InDomains(PlacementConstraint, frozen=True, kw_only=True):
    """One that asks for failure domains."""

    form: OnePlace | Even | AtLeast

    @property
    def domain_of(self) -> Mapping[str, str]:
        return self.form.place_of

    def place(self, host: str) -> str:
        return self.domain_of.get(host, host)

    def surplus(self, placement: Placement) -> int:
        return self.form.excess(Counter(self.domain_of.get(host) for _, host in self.running(placement)))

    def home(self, vm: str, placement: Placement) -> str | None:
        """The domain that a member runs in."""
        host = placement.runs_on(vm)
        return None if host is None else self.domain_of.get(host)

    def peers_in(self, domain: str | None, vm: str, placement: Placement) -> tuple[str, ...]:
        """Other members that are in a domain, or in none."""
        return tuple(
            peer
            for peer in self.vms
            if peer != vm and any(self.domain_of.get(host) == domain for host in placement.occupied(peer))
        )

    def company(self, vm: str, placement: Placement) -> Callable[[str], int]:
        """Where members are drawn together, company is no harm."""
        if self.positive:
            return super().company(vm, placement)
        others = count_others(self.vms, vm, placement, self.domain_of, NO_VMS)
        return lambda host: others.at_most[self.domain_of.get(host, "")]


class Counts(NamedTuple):
    """Of members other than the one that is asked about."""

    #: Those that are in a domain and nowhere else.
    surely: Counter[str]
    #: Those that hold a host there, too: a migrating VM counts at both ends.
    at_most: Counter[str]
    #: How many are in a place that is not known.
    unknown: int


def count_others(
    vms: tuple[str, ...],
    vm: str,
    placement: Placement,
    domain_of: Mapping[str, str],
    unconfirmed: frozenset[str],
) -> Counts:
    """Count members by domain; hosts in no domain count for nothing."""
    surely: Counter[str] = Counter()
    at_most: Counter[str] = Counter()
    unknown = 0
    for peer in vms:
        if peer == vm:
            continue
        if peer in unconfirmed:
            unknown += 1
            continue
        domains = {domain_of.get(host) for host in placement.occupied(peer)}
        at_most.update(domain for domain in domains if domain is not None)
        if len(domains) == 1 and (only := next(iter(domains))) is not None:
            surely[only] += 1
    return Counts(surely, at_most, unknown)


def eligible_domains(snapshot: Snapshot, found: Resolved) -> frozenset[str]:
    """By hard host rules and pinning: a host counts where any member may run on it."""
    blocks = (block_of(snapshot, (vm,), asks_by_vm(snapshot), NOTHING) for vm in found.vms)
    distinct = {(one.allowed, one.forbidden): one for one in blocks}.values()
    draining = frozenset(snapshot.draining_hosts)
    cluster = snapshot.hosts_of_cluster.get(found.cluster or "", ())
    hosts = (host for host in cluster if host.up and host.id not in draining)
    return frozenset(
        found.domain_of[host.id]
        for host in hosts
        if host.id in found.domain_of and any(block.admits(host.id) for block in distinct)
    )


DOMAINS_TOO_UNEVEN = ReasonKind(
    "domains_too_uneven",
    "{group} lets failure domains differ by {number:g} of its VMs, and here they would by more",
    veto=True,
)


class Spread(InDomains, frozen=True, kw_only=True):
    """Invariant: no two domains differ by more than `max_skew` members.

    Of eligible domains alone: those with a host that is up and that members may run on. With fewer than
    `min_domains` of these, the emptiest counts as empty. A host in no domain is no place for a member.

    Source: Kubernetes' topologySpreadConstraints, judged on the whole placement.
    """

    asks: ClassVar[str] = "evenly over failure domains"

    form: Even

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members of domains with too many, and those in no domain."""
        counts = Counter(self.domain_of.get(host) for _, host in self.running(placement))
        most = self.form.max_skew + self._minimum(counts)
        crowded = {one for one, members in counts.items() if one in self.form.eligible and members > most}
        return tuple(
            vm
            for vm, host in self.running(placement)
            if (own := self.domain_of.get(host)) is None or own in crowded
        )

    def judge(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NO_VMS) -> Judge:
        """Against domains that would have too many, and against leaving one that would have too few."""
        others = count_others(self.vms, vm, placement, self.domain_of, unconfirmed)
        home = self.home(vm, placement)
        before = self._skew(others, home)

        def against(host: str) -> Against | None:
            domain = self.domain_of.get(host)
            if domain is None:
                return Against(HOST_IN_NO_DOMAIN)
            if domain == home:
                return None
            rise = others.at_most[domain] + 1 - self._lowest(others, domain)
            crowded = domain in self.form.eligible and rise > self.form.max_skew
            after = self._skew(others, domain)
            if crowded or after > max(self.form.max_skew, before):
                return Against(DOMAINS_TOO_UNEVEN, self.form.max_skew, self.peers_in(domain, vm, placement))
            return None

        return against

    def _skew(self, others: Counts, domain: str | None) -> int:
        """By how much the domains differ at most, with one more in a domain."""
        highest = max((others.at_most[one] + (one == domain) for one in self.form.eligible), default=0)
        return highest - self._lowest(others, domain)

    def _lowest(self, others: Counts, domain: str | None) -> int:
        """How many the emptiest domain has, at the best for those whose place is not known."""
        counts = others.surely.copy()
        if domain is not None:
            counts[domain] += 1
        for _ in range(0 if self.form.from_nothing else others.unknown):
            counts[min(self.form.eligible, key=lambda one: counts[one], default="")] += 1
        return self._minimum(counts)

    def _minimum(self, counts: Mapping[Any, int]) -> int:
        if self.form.from_nothing:
            return 0
        return min((counts.get(domain, 0) for domain in self.form.eligible), default=0)


def _too_few_for_skew(found: Resolved, hosts: frozenset[str]) -> Iterator[str]:
    domains, least = len(set(found.domain_of.values())), found.rule.min_domains or 0
    room = domains * (found.rule.max_skew or 0)
    if domains < least and len(found.vms) > room:
        yield (
            f"with {domains} of {least} failure domains only {room} of {len(found.vms)} VMs can run:"
            f" {found.rule.max_skew} in each"
        )


def _even(snapshot: Snapshot, found: Resolved) -> Even:
    eligible = eligible_domains(snapshot, found)
    few = len(eligible) < (found.rule.min_domains or 0)
    return Even(found.rule.max_skew or 0, found.domain_of, eligible, from_nothing=few)


SPREAD = PlacementKind(
    name="spread",
    summary="failure domains differ by at most `max_skew` of the VMs",
    needs=("vms", "max_skew"),
    takes=("min_domains",),
    in_domains=True,
    constraint=Spread,
    form=_even,
    impossible=_too_few_for_skew,
)


TOO_FEW_DOMAINS = ReasonKind(
    "too_few_domains",
    "{group} wants its VMs in {number:g} failure domains at least, and here they would be in too few",
    veto=True,
)


class MinimumDomains(InDomains, frozen=True, kw_only=True):
    """Invariant: members run in at least `least` domains, or each in its own.

    Fewer members than `least` that run cannot be in more domains than they are. Source: ROADEF 2012's
    spreadMin.
    """

    asks: ClassVar[str] = "in several failure domains"

    form: AtLeast

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members that could leave a domain without giving it up, where there are too few."""
        if not self.surplus(placement):
            return ()
        counts = Counter(self.domain_of.get(host) for _, host in self.running(placement))
        return tuple(
            vm
            for vm, host in self.running(placement)
            if (own := self.domain_of.get(host)) is None or counts[own] > 1
        )

    def judge(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NO_VMS) -> Judge:
        """Against domains that others are in already, as long as there are too few."""
        peers = [peer for peer in self.vms if peer != vm and peer not in unconfirmed]
        held = [{self.domain_of.get(host) for host in placement.occupied(peer)} for peer in peers]
        running = [domains for domains in held if domains]
        unknown = len(unconfirmed.intersection(self.vms) - {vm})
        home, taken = self.home(vm, placement), set[str | None]().union(*running)
        needed = min(self.form.least, len(running) + unknown + 1)

        @cache
        def against_domain(domain: str | None) -> Against | None:
            if domain is not None and (domain == home or domain not in taken):
                return None
            if _surely_different([*running, {domain}]) + unknown >= needed:
                return None
            return Against(TOO_FEW_DOMAINS, self.form.least, self.peers_in(domain, vm, placement))

        return lambda host: against_domain(self.domain_of.get(host))


def _surely_different(held: Iterable[Set[str | None]]) -> int:
    """In how many domains VMs are at the least, each in one of those that it holds; in none, in vain."""
    counted: set[str | None] = {None}
    found = 0
    for domains in sorted(held, key=len):
        if counted.isdisjoint(domains):
            counted |= domains
            found += 1
    return found


def _too_few_for_least(found: Resolved, hosts: frozenset[str]) -> Iterator[str]:
    domains, least = len(set(found.domain_of.values())), found.rule.least or 0
    if min(len(found.vms), least) > domains:
        yield f"{counted(domains, 'failure domain')} exist, and the VMs are to run in {least}"


MINIMUM_DOMAINS = PlacementKind(
    name="minimum_domains",
    summary="the VMs in at least `least` failure domains",
    needs=("vms", "least"),
    in_domains=True,
    constraint=MinimumDomains,
    form=lambda snapshot, found: AtLeast(found.rule.least or 0, found.domain_of),
    impossible=_too_few_for_least,
)


PEER_IN_OTHER_DOMAIN = ReasonKind(
    "peer_in_other_domain",
    "{group} wants its VMs in one failure domain, and VM {vm} is in another than this host",
    veto=True,
)


class SameDomain(InDomains, frozen=True, kw_only=True):
    """Invariant: all members that run, run in one of the domains, on any host. Source: BtrPlace's Among."""

    asks: ClassVar[str] = "in one failure domain"
    positive: ClassVar[bool] = True

    form: OnePlace

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members off the domain that most share."""
        return off_gathering({vm: self.domain_of.get(host) for vm, host in self.running(placement)})

    def judge(self, vm: str, placement: Placement, unconfirmed: frozenset[str] = NO_VMS) -> Judge:
        """Against domains without another member, where one is in any; within its own a member may move."""
        others = {
            self.domain_of[host]: peer
            for peer in reversed(self.vms)
            if peer != vm and peer not in unconfirmed
            for host in placement.destinations(peer)
            if host in self.domain_of
        }
        home = self.home(vm, placement)

        def against(host: str) -> Against | None:
            domain = self.domain_of.get(host)
            if domain is None:
                return Against(HOST_IN_NO_DOMAIN)
            if not others or domain in others or domain == home:
                return None
            return Against(PEER_IN_OTHER_DOMAIN, vms=tuple(others.values()))

        return against


SAME_DOMAIN = PlacementKind(
    name="same_domain",
    summary="all of the VMs in one failure domain, on any host of it",
    needs=("vms",),
    in_domains=True,
    constraint=SameDomain,
    form=lambda snapshot, found: OnePlace(found.domain_of),
)
