"""The order of the engine's own enforcement, against the definition of its AffinityRulesEnforcer."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given, settings

from ovirt_placement.model import Snapshot
from ovirt_simulator.scheduler.placing import candidates
from tests.examples import examples
from tests.simulator.core import engines
from tests.simulator.scheduler.clusters import states
from tests.simulator.scheduler.test_java import Table


def as_put(ids: list[str]) -> list[str]:
    table = Table()
    for one in ids:
        table.put(one)
    return table.keys()


def signed(one: str) -> tuple[int, int]:
    whole = UUID(one).bytes
    return int.from_bytes(whole[:8], signed=True), int.from_bytes(whole[8:], signed=True)


def unified(groups: list[tuple[str, ...]]) -> list[list[str]]:
    """Each group makes a new hash set of the sets that its VMs are in, one after the other."""
    sets = [[vm] for vm in dict.fromkeys(vm for vms in groups for vm in vms)]
    for vms in groups:
        merged = as_put([other for vm in vms for one in sets if vm in one for other in one])
        sets = [one for one in sets if not set(one) & set(merged)] + [merged]
    return sets


def off_their_hosts(state: Snapshot, cluster: str) -> list[str]:
    """By how many hard host rules a VM breaks, the fewest first; of equals as in the table of VMs."""
    breaks: Counter[str] = Counter()
    for group in state.affinity_groups:
        rule = group.hosts_rule
        if group.cluster != cluster or not (rule.enabled and rule.enforcing) or not group.hosts:
            continue
        for vm in group.vms:
            host = state.vm_by_id[vm].host
            if host is not None and (host in group.hosts) != rule.positive:
                breaks[vm] += 1
    return sorted(as_put(list(breaks)), key=lambda vm: breaks[vm])


def off_their_peers(state: Snapshot, cluster: str) -> list[list[str]]:
    """Buckets of VMs of one host: of larger groups first, then of those with the larger least id."""
    hard = [
        group
        for group in state.affinity_groups
        if group.cluster == cluster and group.vms and group.vms_rule.enabled and group.vms_rule.enforcing
    ]
    rules = [(True, one) for one in unified([g.vms for g in hard if g.vms_rule.positive])]
    rules += [(False, list(g.vms)) for g in hard if not g.vms_rule.positive]
    rules.sort(key=lambda one: (len(one[1]), min(map(signed, one[1]))), reverse=True)
    found = []
    for together, members in rules:
        on: dict[str, list[str]] = {}
        for vm in members:
            host = state.vm_by_id[vm].host
            if host is not None:
                on.setdefault(host, []).append(vm)
        broken = len(on) > 1 if together else any(len(vms) > 1 for vms in on.values())
        buckets = [on[host] for host in as_put(list(on)) if broken]
        buckets = [b for b in buckets if all(state.vm_by_id[vm].migratable for vm in b)]
        if together:
            found += sorted(buckets, key=len)
        else:
            found += sorted((b for b in buckets if len(b) > 1), key=len, reverse=True)
    return found


def is_by_lot(state: Snapshot, cluster: str) -> bool:
    """Whether hashes of groups decide: of rules with one size and least id."""
    sizes = [
        (len(group.vms), min(map(signed, group.vms)))
        for group in state.affinity_groups
        if group.cluster == cluster and group.vms and group.vms_rule.enabled and group.vms_rule.enforcing
    ]
    return len(set(sizes)) < len(sizes)


@pytest.mark.system
@settings(max_examples=examples(60))
@given(states().filter(lambda state: bool(state.affinity_groups)))
def test_candidates_come_in_the_order_of_the_definition(state: Snapshot) -> None:
    backend = engines.backend(state)
    for cluster in backend.state.clusters.values():
        if is_by_lot(state, cluster.id):
            continue
        found = [vm.id for vm in candidates(backend.state, cluster, backend.random.shuffle)]
        first = off_their_hosts(state, cluster.id)
        assert found[: len(first)] == first
        rest = found[len(first) :]
        for bucket in off_their_peers(state, cluster.id):
            assert sorted(rest[: len(bucket)]) == sorted(bucket)
            rest = rest[len(bucket) :]
        assert rest == []
