"""The order in which the engine tries VMs of violated rules, against its definition: what is by lot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.catalogue import constraints
from ovirt_placement.rules.engine_enforcement import tiers
from ovirt_placement.rules.placement import SnapshotPlacement
from tests.builders import APART, CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.examples import examples
from tests.placement.rules.java.test_ids import halves, spread

#: A table with so few keys has this many bins.
BINS = 16


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Ids of which no two are in one bin: how those are ordered is reported the table itself."""
    ids = st.lists(st.uuids().map(str), min_size=9, max_size=9, unique_by=lambda name: spread(name) % BINS)
    names = draw(ids)
    hosts, vms = names[:3], names[3:]
    members = st.lists(st.sampled_from(vms), min_size=2, max_size=5, unique=True).map(" ".join)
    listed = st.lists(st.sampled_from(hosts), min_size=1, max_size=2, unique=True).map(" ".join)
    return snapshot(
        *map(host, hosts),
        *(
            vm(name, draw(st.none() | st.sampled_from(hosts)), migratable=draw(st.integers(0, 5)) > 0)
            for name in vms
        ),
        *(group(f"apart{number}", APART, draw(members)) for number in range(draw(st.integers(0, 2)))),
        *(
            group(
                f"near{number}",
                vms=draw(members),
                hosts_rule=draw(st.sampled_from([TOGETHER, APART])),
                hosts=draw(listed),
            )
            for number in range(draw(st.integers(0, 2)))
        ),
        *([group("together", TOGETHER, draw(members))] if draw(st.booleans()) else []),
    )


def by_table(names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: spread(name) % BINS)


def expected(state: Snapshot) -> Iterator[list[str]]:
    """VMs on wrong hosts one by one, those with the fewest violated rules first; then crowds."""
    wrong = Counter(
        name
        for one in state.affinity_groups
        if one.hosts_rule.hard
        for name in one.vms
        if (place := state.vm_by_id[name].host) and (place in one.hosts) is not one.hosts_rule.positive
    )
    for count in sorted({*wrong.values()}):
        yield from ([name] for name in by_table([*wrong]) if wrong[name] == count)
    violated = [
        one for one in state.affinity_groups if one.vms_rule.hard and is_violated(state, one.vms, one.id)
    ]
    violated.sort(key=lambda one: min(map(halves, one.vms)), reverse=True)
    for one in sorted(violated, key=lambda one: -len(one.vms)):
        crowds: dict[str, list[str]] = {}
        for name in one.vms:
            place = state.vm_by_id[name].host
            if place is not None:
                crowds.setdefault(place, []).append(name)
        left = [
            place
            for place in by_table([*crowds])
            if all(state.vm_by_id[name].movable for name in crowds[place])
        ]
        if one.vms_rule.positive:
            left.sort(key=lambda place: len(crowds[place]))
        else:
            left = [place for place in left if len(crowds[place]) > 1]
            left.sort(key=lambda place: -len(crowds[place]))
        yield from (crowds[place] for place in left)


def is_violated(state: Snapshot, vms: Sequence[str], name: str) -> bool:
    places = [place for vm in vms if (place := state.vm_by_id[vm].host)]
    return len({*places}) > 1 if name == "together" else len({*places}) < len(places)


@settings(max_examples=examples(60))
@given(clusters())
def test_only_the_order_within_a_crowd_is_by_lot(state: Snapshot) -> None:
    # Which of two groups comes first that have as many VMs and the same smallest one nobody says.
    sizes = [(len(one.vms), min(map(halves, one.vms))) for one in state.affinity_groups]
    assume(len({*sizes}) == len(sizes))
    placement = SnapshotPlacement(state)
    rules = [one for one in constraints(state, CLUSTER) if not one.keeps(placement)]
    able = {one.id for one in state.vms if one.movable}
    found = [sorted(tier) for hard, tier in tiers(rules, placement, able, as_engine=True) if hard and tier]
    assert found == [sorted(tier) for tier in expected(state)]
