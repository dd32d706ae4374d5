"""What VMs take of hosts is the same whether it is added up or carried on from the snapshot before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as limit
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.lookups.index import prepare
from ovirt_placement.model import FrozenKeys, Nic, Snapshot, VnicProfile
from ovirt_placement.rules.placement_keys.host_table import (
    HostTable,
    Occupancy,
    host_table_without,
    keys_of_host,
    occupancy,
)
from ovirt_placement.rules.placement_keys.placing import rank_hosts
from ovirt_placement.rules.placement_keys.settings import DEFAULTS
from ovirt_placement.rules.verdict import Request
from tests.builders import cluster, host, pending, vm
from tests.examples import examples
from tests.placement.rules.placement_keys.parts import key, keyed
from tests.placement.rules.placement_keys.reference_worlds import HOSTS, NEW, OTHERS, worlds

REQUEST = Request((NEW,), HOSTS)


@st.composite
def successions(draw: st.DrawFn) -> tuple[Snapshot, Snapshot]:
    """A world and one that follows it: what is not exchanged is the same object in both."""
    before, other = _crowded(draw(worlds())), draw(worlds())
    some = st.sets(st.sampled_from((NEW, *OTHERS)), max_size=2)
    others = {
        "hosts": (*before.hosts[1:], before.hosts[0]),
        "clusters": tuple(replace(one, data_center=None) for one in before.clusters),
        "vnic_profiles": (),
        **{part: getattr(other, part) for part in ("pending", "placement_keys", "sticky_copies")},
    }
    changed = draw(st.sets(st.sampled_from(sorted(others)), max_size=2))
    parts: dict[str, Any] = {part: others[part] for part in changed}
    exchanged, gone = draw(some), draw(some)
    vms = tuple(other.vm_by_id[one.id] if one.id in exchanged else one for one in before.vms)
    parts["vms"] = tuple(one for one in vms if one.id == NEW or one.id not in gone)
    if exchanged := draw(some):
        records = {one.vm: one for one in before.frozen_keys}
        newer = {one.vm: one for one in other.frozen_keys}
        kept = {name: one for name, one in records.items() if name not in exchanged}
        parts["frozen_keys"] = (*kept.values(), *(one for name, one in newer.items() if name in exchanged))
    return before, replace(before, **parts)


def _crowded(world: Snapshot) -> Snapshot:
    """The same with many other VMs that nothing happens to: they are not all looked at again."""
    crowd = [f"x{number}" for number in range(20)]
    records = tuple(FrozenKeys(vm=name, keys=()) for name in crowd)
    vms = tuple(vm(name) for name in crowd)
    return replace(world, vms=(*world.vms, *vms), frozen_keys=(*world.frozen_keys, *records))


def plain(found: Occupancy) -> tuple[object, ...]:
    """Without the order in which VMs were looked at."""
    keys = {
        name: {value: sorted(places) for value, places in values.items()}
        for name, values in found.keys.items()
    }
    return list(found.memory_mb), list(found.vcpus), keys


def plain_table(table: HostTable) -> list[tuple[object, ...]]:
    """Host by host, what is left of it and all of its keys."""
    return [
        (host, capacity, table.lists.system.at(at), table.lists.customer.at(at), list(table.special.at(at)))
        for at, (host, capacity) in enumerate(zip(table.ids, table.capacities, strict=True))
    ]


@limit(max_examples=examples(40))
@given(successions())
def test_what_is_carried_on_is_what_is_added_up(succession: tuple[Snapshot, Snapshot]) -> None:
    before, after = succession
    alone = replace(after)
    earlier = rank_hosts(before, REQUEST), plain(occupancy(before))
    prepare(after, like=before)
    assert plain(occupancy(after)) == plain(occupancy(alone))
    assert rank_hosts(after, REQUEST) == rank_hosts(alone, REQUEST)
    tables = (host_table_without(one, DEFAULTS, one.vm_by_id[NEW]) for one in (after, alone))
    assert plain_table(next(tables)) == plain_table(next(tables))
    keys = ([keys_of_host(one, host, DEFAULTS) for host in one.hosts] for one in (after, alone))
    assert next(keys) == next(keys)
    assert (rank_hosts(replace(before), REQUEST), plain(occupancy(before))) == earlier, "it was left alone"


def test_migration_moves_what_a_vm_takes_and_brings() -> None:
    names = [f"v{number}" for number in range(100)]
    records = tuple(FrozenKeys(vm=name, keys=(("A", 1.0),)) for name in names)
    before = replace(
        keyed(host("h1"), host("h2"), *(vm(name, "h1", memory_mb=1024) for name in names)),
        frozen_keys=records,
    )
    moved = (vm("v0", "h2", memory_mb=1024), *before.vms[1:])
    after = replace(before, vms=moved)
    occupancy(before)
    prepare(after, like=before)
    assert plain(occupancy(after)) == ([99 * 1024, 1024], [99, 1], {"A": {1.0: [0] * 99 + [1]}})


def test_present_keys_of_unrecorded_vms_follow_the_keys() -> None:
    before = _crowded(keyed(host("h1"), vm("a", "h1")))
    after = replace(before, placement_keys=(key("A", key_class="customer", resource="a"),))
    assert occupancy(before).keys == {}
    prepare(after, like=before)
    assert plain(occupancy(after))[2] == {"A": {1.0: [0]}}


def test_present_keys_of_starting_vms_follow_the_keys_whatever_was_recorded() -> None:
    records = (FrozenKeys(vm="a", keys=(("of an earlier run", 1.0),)),)
    before = _crowded(replace(keyed(host("h1"), vm("a"), pending("a", "h1")), frozen_keys=records))
    after = replace(before, placement_keys=(key("A", key_class="customer", resource="a"),))
    assert occupancy(before).keys == {}
    prepare(after, like=before)
    assert plain(occupancy(after))[2] == {"A": {1.0: [0]}}


@pytest.mark.parametrize(
    ("level", "resource", "change"),
    [("vdc", "dc1", {"clusters": (cluster(),)}), ("network", "net1", {"vnic_profiles": ()})],
)
def test_present_keys_of_unrecorded_vms_follow_what_they_depend_on(
    level: str, resource: str, change: dict[str, Any]
) -> None:
    nic = Nic(id="nic1", name="nic1", vnic_profile="profile1")
    before = _crowded(
        keyed(
            cluster(data_center="dc1"),
            host("h1"),
            vm("a", "h1", nics=(nic,)),
            keys=(key("A", key_class="be", level=level, resource=resource),),
            vnic_profiles=(VnicProfile(id="profile1", name="profile1", network="net1"),),
        )
    )
    assert plain(occupancy(before))[2] == {"A": {1.0: [0]}}
    after = replace(before, **change)
    prepare(after, like=before)
    assert occupancy(after).keys == {}
