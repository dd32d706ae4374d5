"""Conflicts are the simulated engine's, but for those that it reports although they can be satisfied."""

from __future__ import annotations

from hypothesis import given

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity.conflicts import Conflict, ConflictType
from ovirt_placement.rules.affinity.conflicts import find_conflicts as find_ours
from ovirt_simulator.core.affinity import Flat
from ovirt_simulator.core.affinity import find_conflicts as find_engines
from tests.builders import CLUSTER
from tests.placement.rules.strategies import snapshots
from tests.simulator.core.engines import EVENT_NAMES

#: Types of which the engine reports exactly what is one.
ALIKE = {
    ConflictType.HARD_POSITIVE_AND_NEGATIVE_HOSTS,
    ConflictType.POSITIVE_AND_NEGATIVE_HOSTS,
    ConflictType.HOSTS_AGAINST_TOGETHER,
    ConflictType.TOGETHER_AGAINST_APART,
}
Described = tuple[str, frozenset[str], frozenset[str], frozenset[str], frozenset[str]]


def of_engine(state: Snapshot) -> set[Described]:
    groups = []
    for one in state.affinity_groups:
        hosts = frozenset(state.group_hosts[one.id])
        own = (vm for vm in state.group_vms[one.id] if state.vm_by_id[vm].cluster == one.cluster)
        groups.append(
            Flat(
                name=one.id,
                vms=frozenset(own),
                hosts=hosts,
                vm_polarity=one.vms_rule.positive if one.vms_rule.enabled else None,
                host_polarity=one.hosts_rule.positive if one.hosts_rule.enabled and hosts else None,
                hosts_enforcing=one.hosts_rule.enforcing,
            )
        )
    return {
        (EVENT_NAMES[found.code], found.groups, found.vms, found.hosts, found.negative_vms)
        for found in find_engines(groups)
    }


def described(found: Conflict) -> Described:
    return (
        str(found.type),
        frozenset(found.groups),
        frozenset(found.vms),
        frozenset(found.hosts),
        frozenset(found.negative_vms),
    )


@given(snapshots(most_groups=4))
def test_types_that_the_engine_judges_right_are_the_same(state: Snapshot) -> None:
    alike = {str(one) for one in ALIKE}
    ours = {described(found) for found in find_ours(state, CLUSTER) if found.type in ALIKE}
    assert ours == {found for found in of_engine(state) if found[0] in alike}


@given(snapshots(most_groups=4))
def test_vm_without_a_common_host_is_among_those_that_the_engine_warns_of(state: Snapshot) -> None:
    for found in find_ours(state, CLUSTER):
        if found.type is ConflictType.NO_COMMON_HOST:
            (engines,) = (one for one in of_engine(state) if one[0] == str(found.type))
            assert set(found.vms) <= engines[2]
            assert set(found.groups) <= engines[1]
