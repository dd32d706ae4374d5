"""What VMs take of hosts is the same whether it is added up or carried on from the snapshot before."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as limit
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.lookups import prepare
from ovirt_placement.model import FrozenKeys, Nic, Snapshot, VnicProfile
from ovirt_placement.rules.elements.verdict import Request
from ovirt_placement.rules.placement_keys.host_table import (
    HostTable,
    Occupancy,
    host_keys,
    host_table_without,
    occupancy,
)
from ovirt_placement.rules.placement_keys.keys import DEFAULTS
from ovirt_placement.rules.placement_keys.units import rank_hosts
from tests.builders import cluster, host, key, pending, vm
from tests.examples import examples
from tests.placement.rules.placement_keys.nodes import keyed
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
        (host, capacity, table.lists.system.at(at), table.lists.customer.at(at), capacity.shares)
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
    keys = ([host_keys(one, host, DEFAULTS) for host in one.hosts] for one in (after, alone))
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


def test_no_key_of_its_own_counts_against_a_vm_however_often_it_stands_there() -> None:
    twice = FrozenKeys(vm="a", keys=(("A", 1.0), ("A", 1.0), ("A", 2.0)))
    state = replace(keyed(host("h1"), vm("a", "h1")), frozen_keys=(twice,))
    table = host_table_without(state, DEFAULTS, state.vm_by_id["a"])
    assert table.lists.customer.at(0) == []


OF_A = key("A", key_class="customer", resource="a")
EARLIER = FrozenKeys(vm="a", keys=(("of an earlier run", 1.0),))


def depending(level: str, resource: str) -> Snapshot:
    return keyed(
        cluster(data_center="dc1"),
        host("h1"),
        vm("a", "h1", nics=(Nic(id="nic1", name="nic1", vnic_profile="profile1"),)),
        keys=(key("A", key_class="be", level=level, resource=resource),),
        vnic_profiles=(VnicProfile(id="profile1", name="profile1", network="net1"),),
    )


@pytest.mark.parametrize(
    ("before", "change", "brings"),
    [
        pytest.param(keyed(host("h1"), vm("a", "h1")), {"placement_keys": (OF_A,)}, True, id="keys"),
        pytest.param(
            replace(keyed(host("h1"), vm("a"), pending("a", "h1")), frozen_keys=(EARLIER,)),
            {"placement_keys": (OF_A,)},
            True,
            id="keys of one that starts, recorded or not",
        ),
        pytest.param(depending("vdc", "dc1"), {"clusters": (cluster(),)}, False, id="data center"),
        pytest.param(depending("network", "net1"), {"vnic_profiles": ()}, False, id="network"),
    ],
)
def test_present_keys_of_unrecorded_vms_follow_what_they_depend_on(
    before: Snapshot, change: dict[str, Any], brings: bool
) -> None:
    there = {"A": {1.0: [0]}}
    before = _crowded(before)
    after = replace(before, **change)
    assert plain(occupancy(before))[2] == ({} if brings else there)
    prepare(after, like=before)
    assert plain(occupancy(after))[2] == (there if brings else {})
