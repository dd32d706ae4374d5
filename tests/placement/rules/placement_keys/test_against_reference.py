"""The rules against the same written down a second time, in whole worlds."""

from collections import Counter
from fractions import Fraction
from itertools import chain, combinations, permutations
from random import Random
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import settings as limit
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.lookups import prepare
from ovirt_placement.model import FrozenKeys, Host, Nic, Snapshot, Vm, VnicProfile
from ovirt_placement.rules.elements.verdict import Request
from ovirt_placement.rules.placement_keys.capacity import present_set
from ovirt_placement.rules.placement_keys.host_table import (
    HostTable,
    Occupancy,
    copies_after_start,
    host_keys,
    host_table_without,
    occupancy,
    sticky_keys,
)
from ovirt_placement.rules.placement_keys.judgement import KeyDecision, Score
from ovirt_placement.rules.placement_keys.keys import DEFAULTS, KeySettings
from ovirt_placement.rules.placement_keys.units import compiled_keys, decide_vm, rank_hosts
from tests.builders import cluster, host, key, pending, vm
from tests.examples import examples
from tests.placement.rules.placement_keys import reference
from tests.placement.rules.placement_keys.nodes import accepted, keyed, ranks
from tests.placement.rules.placement_keys.reference_worlds import HOSTS, NEW, OTHERS, settings, worlds

T = TypeVar("T")

SUBSETS = tuple(chain.from_iterable(combinations(HOSTS, size) for size in range(1, len(HOSTS) + 1)))


def new(world: Snapshot) -> Vm:
    return world.vm_by_id[NEW]


def best(among: list[str], ranking: dict[str, int]) -> set[str]:
    """What the engine takes of the hosts that are left to it, if it asks nobody else."""
    lowest = min((ranking[host] for host in among), default=None)
    return {host for host in among if ranking[host] == lowest}


def specified_choice(world: Snapshot, hosts: tuple[str, ...], chosen: KeySettings) -> set[str]:
    """The reference's choice; dedicated failover hosts are taken only where nothing else can be."""
    records = [world.host_by_id[host] for host in hosts]
    for among in ([one for one in records if not one.failover], records):
        if choice := reference.place(world, new(world), among, chosen).choice:
            return set(choice)
    return set()


@limit(max_examples=examples(60))
@given(worlds())
def test_strongest_level_wins_and_its_weight_travels(world: Snapshot) -> None:
    for one in world.vms:
        compiled = compiled_keys(world, one.id)
        found = tuple(
            {name: (key.value, key.weight) for name, key in side.items()}
            for side in (compiled.system, compiled.customer)
        )
        assert found == reference.compiled(world, one)


@pytest.mark.system
@given(worlds(), settings())
def test_every_step_is_the_references(world: Snapshot, chosen: KeySettings) -> None:
    decision = decide_vm(world, new(world), HOSTS, chosen)
    expected = reference.place(world, new(world), world.hosts, chosen)
    scored = {one.host: one.system.total for one in decision.hosts if one.system is not None}
    wishes = {one.host: one.customer.total for one in decision.hosts if one.customer is not None}
    rooms = {one.host: (one.uncontended_mb, one.contended_mb) for one in decision.hosts}
    assert rooms == {host.id: reference.room(world, host, new(world), chosen) for host in world.hosts}
    assert scored == expected.scores
    assert wishes == {host: expected.customer_scores[host] for host in wishes}
    assert set(wishes) == set(reference.acceptable(world, new(world), world.hosts, chosen))
    assert (list(decision.candidates), list(decision.choice)) == (expected.candidates, expected.choice)
    assert (decision.round, decision.failed) == (expected.round, expected.failed)
    assert_scores_report_what_they_are_made_of(decision, world, chosen)


def assert_scores_report_what_they_are_made_of(
    decision: KeyDecision, world: Snapshot, chosen: KeySettings
) -> None:
    """Of both lists of a host, every instance whose name the VM has, too."""
    system, customer = reference.compiled(world, new(world))
    for one in decision.hosts:
        host = world.host_by_id[one.host]
        for score, wanted, there in (
            (one.system, system, reference.system_list(world, host, new(world), chosen)),
            (one.customer, customer, reference.customer_list(world, host, new(world), chosen)),
        ):
            if score is not None:
                assert instances(score) == Counter((name, value) for name, value in there if name in wanted)
                assert score.total == sum(match.points for match in score.matches)


def instances(score: Score) -> Counter[tuple[str, Fraction]]:
    found: Counter[tuple[str, Fraction]] = Counter()
    for match in score.matches:
        found[match.name, match.found] += match.count
    return found


@limit(max_examples=examples(60))
@given(worlds(), settings())
def test_the_keys_of_a_host_are_its_own_and_those_that_vms_bring(
    world: Snapshot, chosen: KeySettings
) -> None:
    """With their duplicates."""
    other = vm("other")
    for one in world.hosts:
        found = host_keys(world, one, chosen)
        for values, expected in (
            (found.system, reference.system_list(world, one, other, chosen)),
            (found.customer, reference.customer_list(world, one, other, chosen)),
        ):
            assert {(name, value): n for name, value, n in values} == Counter(expected)


@limit(max_examples=examples(40))
@given(worlds(), settings())
def test_best_rank_is_the_choice_for_every_set_of_hosts(world: Snapshot, chosen: KeySettings) -> None:
    """Whichever hosts the engine asks about, and whichever of these other filters leave; ranks are dense."""
    whole = ranks(world, *HOSTS, settings=chosen)
    passed = set(accepted(world, *HOSTS, settings=chosen))
    assert passed == set(reference.acceptable(world, new(world), world.hosts, chosen))
    for ranking in (whole, ranks(world, *HOSTS, settings=chosen, drawn=HOSTS)):
        assert (list(ranking), {*ranking.values()}) == ([*HOSTS], {*range(len({*ranking.values()}))})
        assert all(ranking[one] < ranking[other] for one in passed for other in {*HOSTS} - passed)
    for hosts in SUBSETS:
        left = [host for host in hosts if host in passed]
        alone = ranks(world, *hosts, settings=chosen)
        assert accepted(world, *hosts, settings=chosen) == left
        assert best(left, whole) == best(left, alone) == specified_choice(world, hosts, chosen)


@limit(max_examples=examples(30))
@given(worlds(), settings())
def test_a_lot_gives_every_host_that_ties_the_same_chance(world: Snapshot, chosen: KeySettings) -> None:
    """Over all orders in which hosts can be drawn, each of the best wins equally often, and no other ever."""
    tied = best(accepted(world, *HOSTS, settings=chosen), ranks(world, *HOSTS, settings=chosen))
    wins: Counter[str] = Counter()
    keys = compiled_keys(world, NEW)
    drawing = tied if keys.system or keys.customer else set()
    for order in permutations(HOSTS) if drawing else ():
        found = ranks(world, *HOSTS, settings=chosen, drawn=order, explained=False)
        wins[min(found, key=found.__getitem__)] += 1
    assert wins == {host: 24 // len(drawing) for host in drawing}


@limit(max_examples=examples(60))
@given(worlds(), settings(), st.randoms(use_true_random=False))
def test_order_changes_nothing(world: Snapshot, chosen: KeySettings, random: Random) -> None:
    def shuffled(given: tuple[T, ...]) -> tuple[T, ...]:
        return tuple(random.sample(given, len(given)))

    other = replace(
        world, hosts=shuffled(world.hosts), vms=shuffled(world.vms),
        placement_keys=shuffled(world.placement_keys), frozen_keys=shuffled(world.frozen_keys),
        sticky_copies=shuffled(world.sticky_copies),
    )  # fmt: skip
    assert ranks(other, *shuffled(HOSTS), settings=chosen) == ranks(world, *HOSTS, settings=chosen)
    assert set(accepted(other, *shuffled(HOSTS), settings=chosen)) == set(
        accepted(world, *HOSTS, settings=chosen)
    )


@limit(max_examples=examples(60))
@given(worlds(), st.sampled_from(HOSTS))
def test_start_freezes_the_compiled_keys_and_copies_the_sticky_ones(world: Snapshot, name: str) -> None:
    host: Host = world.host_by_id[name]
    frozen, copies = reference.after_start(world, new(world), host)
    own = [key for key in world.placement_keys if (key.level, key.resource) == ("node", name)]
    assert Counter(present_set(world, new(world))) == Counter(frozen.keys)
    assert set(copies_after_start(NEW, world.sticky_copies, sticky_keys(own))) == copies


# -- What VMs take of hosts is the same whether it is added up or carried on from the snapshot before.
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
        (host, capacity, table.system.at(at), table.customer.at(at), capacity.shares)
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


def test_no_key_of_its_own_counts_against_a_vm_however_often_it_stands_there() -> None:
    twice = FrozenKeys(vm="a", keys=(("A", 1.0), ("A", 1.0), ("A", 2.0)))
    state = replace(keyed(host("h1"), vm("a", "h1")), frozen_keys=(twice,))
    table = host_table_without(state, DEFAULTS, state.vm_by_id["a"])
    assert table.customer.at(0) == []


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
            {"placement_keys": (OF_A,)}, True, id="keys of one that starts, recorded or not",
        ),
        pytest.param(depending("vdc", "dc1"), {"clusters": (cluster(),)}, False, id="data center"),
        pytest.param(depending("network", "net1"), {"vnic_profiles": ()}, False, id="network"),
    ],
)  # fmt: skip
def test_present_keys_of_unrecorded_vms_follow_what_they_depend_on(
    before: Snapshot, change: dict[str, Any], brings: bool
) -> None:
    there = {"A": {1.0: [0]}}
    before = _crowded(before)
    after = replace(before, **change)
    assert plain(occupancy(before))[2] == ({} if brings else there)
    prepare(after, like=before)
    assert plain(occupancy(after))[2] == (there if brings else {})
