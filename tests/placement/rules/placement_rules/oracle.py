"""Placement rules written down a second time, from docs/placement-rules.md: satisfied or not, by a placement.

Of the product it knows the records of a snapshot alone. Members are VMs of the cluster, named by their ids.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import product

from ovirt_placement.model import PlacementRule, Snapshot

#: The host of each VM that runs.
At = Mapping[str, str]


def running(state: Snapshot) -> dict[str, str]:
    return {vm.id: vm.host for vm in state.vms if vm.host is not None}


def satisfied(rule: PlacementRule, state: Snapshot, at: At) -> bool:
    """Whether a placement satisfies a rule."""
    if not rule.enabled:
        return True
    members, others = two_sets(rule, state, at)
    if rule.kind == "separate":
        return not set(members.values()) & set(others.values())
    if rule.kind == "exclusive_hosts":
        cluster = {vm.id for vm in state.vms if vm.cluster == rule.cluster}
        strangers = {vm: host for vm, host in at.items() if vm in cluster and vm not in members}
        return not set(strangers.values()) & set(rule.hosts)
    if rule.kind == "capacity":
        counted = [vm for vm, host in at.items() if host in rule.hosts]
        counted = [vm for vm in counted if vm in members or not rule.vms]
        return sum(amount(state, vm, rule.counted) for vm in counted) <= (rule.most or 0)
    return in_domains(rule, state, members)


def two_sets(rule: PlacementRule, state: Snapshot, at: At) -> tuple[At, At]:
    """The members that run, and those of the other set, each with its host."""
    members = {vm: at[vm] for vm in own(state, rule, rule.vms) if vm in at}
    return members, {vm: at[vm] for vm in own(state, rule, rule.other_vms) if vm in at and vm not in members}


def in_domains(rule: PlacementRule, state: Snapshot, members: At) -> bool:
    """A host that is in no domain is one by itself, as all are where a rule has none."""
    domain = {host: one.name for one in rule.domains for host in one.hosts}
    if rule.kind in ("at_most_per_host", "at_most_per_domain"):
        places = [domain.get(host, host) for host in members.values()]
        return all(places.count(place) <= (rule.most or 0) for place in places)
    if rule.kind == "minimum_domains":
        found = {domain[host] for host in members.values() if host in domain}
        return len(found) >= min(rule.least or 0, len(members))
    if rule.kind == "same_domain":
        return len({domain.get(host) for host in members.values()} - {None}) <= 1 and all(
            host in domain for host in members.values()
        )
    assert rule.kind == "spread"
    if any(host not in domain for host in members.values()):
        return False
    eligible = eligible_domains(rule, state)
    counts = {one: sum(domain[host] == one for host in members.values()) for one in eligible}
    lowest = 0 if len(eligible) < (rule.min_domains or 0) else min(counts.values(), default=0)
    return all(count - lowest <= (rule.max_skew or 0) for count in counts.values())


def eligible_domains(rule: PlacementRule, state: Snapshot) -> set[str]:
    """Those with a host that is up and that some member may run on, by its pinning and hard host rules."""
    found = set()
    for one in rule.domains:
        for host in one.hosts:
            stays = state.host_by_id[host].up and host not in state.draining_hosts
            if stays and any(may(state, vm, host) for vm in own(state, rule, rule.vms)):
                found.add(one.name)
    return found


def may(state: Snapshot, vm: str, host: str) -> bool:
    known = state.vm_by_id[vm]
    if not known.migratable and known.pinned_hosts and host not in known.pinned_hosts:
        return False
    for group in state.affinity_groups:
        listed = {*group.hosts, *(h for label in group.host_labels for h in state.label_by_id[label].hosts)}
        vms = {*group.vms, *(v for label in group.vm_labels for v in state.label_by_id[label].vms)}
        hard = group.hosts_rule.enabled and group.hosts_rule.enforcing
        if vm in vms and hard and listed and (host in listed) != group.hosts_rule.positive:
            return False
    old = state.cluster_by_id[known.cluster].compatibility in {"4.2", "4.3"}
    labels = [label for label in state.affinity_labels if label.implicit and vm in label.vms]
    return not old or all(host in label.hosts for label in labels)


def own(state: Snapshot, rule: PlacementRule, words: Iterable[str]) -> list[str]:
    known = state.vm_by_id
    return [word for word in words if word in known and known[word].cluster == rule.cluster]


def amount(state: Snapshot, vm: str, counted: str) -> int:
    known = state.vm_by_id[vm]
    return {"vms": 1, "vcpus": known.vcpus, "memory_mb": known.memory_mb}[counted]


def lets(rule: PlacementRule, state: Snapshot, at: At, vm: str, host: str) -> bool:
    """Whether a rule lets a VM come to a host, though it may be violated already.

    It does where the rule is satisfied afterwards; else where the VM itself does not stand wrong there.
    """
    if not rule.enabled or not concerns(rule, state, vm):
        return True
    after = {**at, vm: host}
    if satisfied(rule, state, after):
        return True
    members, others = two_sets(rule, state, after)
    if rule.kind == "separate":
        return host not in (others if vm in members else members).values()
    if rule.kind == "exclusive_hosts":
        return host not in rule.hosts
    if rule.kind == "capacity":
        return at.get(vm) in rule.hosts or host not in rule.hosts
    return lets_in_domain(rule, state, at, vm, host)


def lets_step(rule: PlacementRule, state: Snapshot, at: At, vm: str, host: str) -> bool:
    """The same of a migration: what is violated already, and no more afterwards, lets it pass."""
    if vm not in at or lets(rule, state, at, vm, host):
        return lets(rule, state, at, vm, host)
    return 0 < distance(rule, state, at) >= distance(rule, state, {**at, vm: host})


def draws_all_at_once(rule: PlacementRule, at: At, vms: Collection[str], host: str) -> bool:
    """Whether VMs of one domain may come to a host together: no other member runs, or one in its domain."""
    domain = {one: each.name for each in rule.domains for one in each.hosts}
    others = {domain[at[one]] for one in rule.vms if one in at and one not in vms and at[one] in domain}
    return host in domain and (not others or domain[host] in others)


def distance(rule: PlacementRule, state: Snapshot, at: At) -> int:
    """How much is too much on the hosts of a capacity; else how many VMs must be elsewhere.

    Whether or not there is room for them, or a host where they can be.
    """
    if rule.kind == "capacity":
        counted = (vm for vm, host in at.items() if host in rule.hosts and (vm in rule.vms or not rule.vms))
        return max(0, sum(amount(state, vm, rule.counted) for vm in counted) - (rule.most or 0))
    first = own(state, rule, rule.vms)
    if rule.kind == "separate":
        second = [vm for vm in own(state, rule, rule.other_vms) if vm not in first]
        there = [
            [[at.get(vm) for vm in vms].count(host.id) for vms in (first, second)] for host in state.hosts
        ]
        return sum(map(min, there))
    if rule.kind == "exclusive_hosts":
        strangers = [vm for vm in at if vm not in first and state.vm_by_id[vm].cluster == rule.cluster]
        return sum(at[vm] in rule.hosts for vm in strangers)
    domain = {host: one.name for one in rule.domains for host in one.hosts}
    members = [at[vm] for vm in first if vm in at]
    if rule.kind in ("at_most_per_host", "at_most_per_domain"):
        places = [domain.get(host, host) for host in members]
        return sum(max(0, places.count(place) - (rule.most or 0)) for place in set(places))
    named = [domain[host] for host in members if host in domain]
    if rule.kind == "minimum_domains":
        return max(0, min(rule.least or 0, len(members)) - len(set(named)))
    if rule.kind == "same_domain":
        return len(members) - max((named.count(one) for one in named), default=0)
    return distance_of_spread(rule, eligible_domains(rule, state), named, len(members) - len(named))


def distance_of_spread(rule: PlacementRule, eligible: set[str], named: list[str], nowhere: int) -> int:
    """Over all even numbers of members in the domains: those that leave theirs, or those that come."""
    most = rule.max_skew or 0
    counts = [named.count(one) for one in sorted(eligible)]
    nothing = len(eligible) < (rule.min_domains or 0)
    if not counts:
        return nowhere
    return min(
        max(
            nowhere + sum(max(0, was - now) for was, now in zip(counts, ends, strict=True)),
            sum(max(0, now - was) for was, now in zip(counts, ends, strict=True)),
        )
        for ends in product(range(len(named) + nowhere + 1), repeat=len(counts))
        if max(ends) - (0 if nothing else min(ends)) <= most
    )


def lets_in_domain(rule: PlacementRule, state: Snapshot, at: At, vm: str, host: str) -> bool:
    domain = {one: each.name for each in rule.domains for one in each.hosts}
    members = own(state, rule, rule.vms)
    elsewhere = [domain.get(at[one], at[one]) for one in members if one in at and one != vm]
    here, home = domain.get(host, host), domain.get(at.get(vm, ""))
    if rule.kind in ("at_most_per_host", "at_most_per_domain"):
        return elsewhere.count(here) + 1 <= (rule.most or 0)
    known = [one for one in elsewhere if one in domain.values()]
    if rule.kind == "minimum_domains":
        new = host in domain and here not in known
        return new or (host in domain and here == home)
    if host not in domain:
        return False
    if here == home:
        return True
    if rule.kind == "same_domain":
        return not known or here in known
    eligible = eligible_domains(rule, state)
    return not eligible or lets_spread(rule, eligible, known, here, home)


def lets_spread(
    rule: PlacementRule, eligible: set[str], elsewhere: list[str], here: str, home: str | None
) -> bool:
    def skew(places: list[str], of: set[str]) -> int:
        counts = {one: places.count(one) for one in eligible}
        lowest = 0 if len(eligible) < (rule.min_domains or 0) else min(counts.values())
        return max(counts[one] for one in of) - lowest

    before = skew([*elsewhere, *([home] if home else [])], eligible)
    after = [*elsewhere, here]
    most = rule.max_skew or 0
    crowded = here in eligible and skew(after, {here}) > most
    return not crowded and skew(after, eligible) <= max(before, most)


def concerns(rule: PlacementRule, state: Snapshot, vm: str) -> bool:
    if state.vm_by_id[vm].cluster != rule.cluster:
        return False
    if rule.kind == "exclusive_hosts":
        return vm not in rule.vms
    return vm in (*rule.vms, *rule.other_vms) or (rule.kind == "capacity" and not rule.vms)
