"""Drawn clusters: as large as asked, the same for a seed, consistent, and violated where they should be."""

import hashlib

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from ovirt_placement.model import AffinityGroup, Snapshot, state_file
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.generate import Sizes, generate
from tests.builders import needed_mb
from tests.examples import examples
from tests.simulator.core.engines import START


def broken(snapshot: Snapshot) -> set[str]:
    """Names of the groups that running members break, counted by the plainest means."""

    by_label = {label.id: label.vms for label in snapshot.affinity_labels}

    def is_broken(group: AffinityGroup) -> bool:
        members = {*group.vms, *(vm for label in group.vm_labels for vm in by_label[label])}
        places = [vm.host for vm in snapshot.vms if vm.host and vm.id in members]
        if group.vms_rule.enabled:
            return len(set(places)) > 1 if group.vms_rule.positive else len(set(places)) < len(places)
        return any((place in group.hosts) != group.hosts_rule.positive for place in places)

    return {group.name for group in snapshot.affinity_groups if is_broken(group)}


@settings(max_examples=examples(25), deadline=None)
@given(
    seed=st.integers(0, 1000),
    hosts=st.integers(2, 12),
    vms=st.integers(0, 80),
    groups=st.integers(0, 15),
    clusters=st.integers(1, 3),
)
def test_what_is_drawn_is_a_state_file(seed: int, hosts: int, vms: int, groups: int, clusters: int) -> None:
    sizes = Sizes(clusters=clusters, hosts=hosts * clusters, vms=vms, groups=groups)
    drawn = generate(sizes, seed)
    assert drawn == generate(sizes, seed)
    assert state_file.loads(state_file.dumps(drawn)) == drawn
    assert (len(drawn.hosts), len(drawn.vms)) == (hosts * clusters, vms)
    for host in drawn.hosts:
        taken = sum(needed_mb(vm) for vm in drawn.vms if vm.host == host.id)
        assert host.free_mb == host.memory_mb - taken >= 0
    for group in drawn.affinity_groups:
        members = {vm.cluster for vm in drawn.vms if vm.id in drawn.group_vms[group.id]}
        assert members == {group.cluster}


@pytest.mark.parametrize("seed", range(5))
def test_groups_are_broken_on_demand_only(seed: int) -> None:
    sizes = {"hosts": 20, "vms": 300, "groups": 60}
    assert broken(generate(Sizes(**sizes, broken=0.0), seed)) == set()
    some = broken(generate(Sizes(**sizes, broken=0.3), seed))
    assert 0.05 * 60 < len(some) < 0.5 * 60


def test_the_engine_agrees_on_what_is_broken() -> None:
    drawn = generate(Sizes(hosts=12, vms=120, groups=30, broken=0.4), 3)
    engine = Engine.from_snapshot(drawn, clock=START)
    groups = engine.queries.state.groups_of(drawn.clusters[0].id)
    assert {group.name for group in groups if engine.queries.is_broken(group)} == broken(drawn) != set()


def test_a_seed_draws_what_it_drew_before_there_were_networks() -> None:
    """The digest is of what was drawn then: figures of measurements stay comparable."""
    drawn = generate(Sizes(clusters=2, hosts=6, vms=40, groups=8), 1)
    plain = replace(drawn, networks=(), vnic_profiles=(), vms=tuple(replace(vm, nics=()) for vm in drawn.vms))
    digest = hashlib.sha256(state_file.dumps(plain)).hexdigest()
    assert digest == "1dbfa0073adda79a57119bbf12c05dac70466674c3635e3aba4498e047bc512e"


def test_vms_have_a_nic_on_the_management_network() -> None:
    state = generate(Sizes(hosts=2, vms=5, groups=1), 1)
    (network,), (profile,) = state.networks, state.vnic_profiles
    assert (network.name, profile.name, profile.network) == ("ovirtmgmt", "ovirtmgmt", network.id)
    nics = [nic for vm in state.vms for nic in vm.nics]
    assert [(nic.name, nic.vnic_profile) for nic in nics] == [("nic1", profile.id)] * 5
    assert len({nic.id for nic in nics}) == 5
