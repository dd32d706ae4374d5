"""Of some of the engine's units the product and the simulator have a copy each: they share nothing and agree.

With the engine itself both are compared by `make engine-conformance`, which needs the engine's classes.
"""

import json
from functools import reduce
from random import Random
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot, state_file
from ovirt_placement.rules.catalogue import constraints
from ovirt_placement.rules.elements import ranks
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.engine_affinity import tiers
from ovirt_simulator.scheduler import weights
from ovirt_simulator.scheduler.placing import candidates
from tests.examples import examples
from tests.placement.rules import strategies
from tests.simulator.core import engines
from tools.engine_conformance import answers
from tools.engine_conformance.__main__ import UNITS
from tools.engine_conformance.comparing import Unit, as_closure, conflicts_alike
from tools.engine_conformance.questions import Question
from tools.engine_conformance.switches import MEMBERS_ELSEWHERE

TWICE = {name: unit for name, unit in UNITS.items() if {"product", "simulator"} <= unit.copies.keys()}


@pytest.mark.parametrize("unit", TWICE.values(), ids=list(TWICE))
def test_both_copies_of_a_unit_answer_alike(unit: Unit) -> None:
    """Number for number, where the simulator is asked without what only the product is not shown."""
    product, simulator = unit.copies["product"], unit.copies["simulator"]
    not_shown = [switch for switch in product.switches if switch not in simulator.switches]
    for question in unit.questions(2, examples(1200)):
        shown = reduce(lambda asked, switch: switch.instead(asked), not_shown, question)
        assert product.answer(question) == simulator.answer(shown)


AFFINE = ("vm-affinity", "vm-to-host", "vm-affinity-weight", "vm-to-host-weight", "ha-weight")
SOME_VMS = st.lists(st.sampled_from(strategies.VMS), min_size=1, max_size=3, unique=True)
SOME_HOSTS = st.lists(st.sampled_from(strategies.HOSTS), min_size=1, unique=True)


@given(strategies.snapshots(), SOME_VMS, SOME_HOSTS)
def test_they_answer_alike_where_groups_collide(state: Snapshot, vms: list[str], hosts: list[str]) -> None:
    """Asked about some VMs and hosts, and about each VM alone and all hosts."""
    whole = json.loads(state_file.dumps(state))
    alone = [([vm], [*strategies.HOSTS]) for vm in strategies.VMS]
    for together, among in ((vms, hosts), *alone):
        question = Question("drawn", whole, {"vms": together, "candidate_hosts": among})
        for name in AFFINE:
            copies = UNITS[name].copies
            assert copies["product"].answer(question) == copies["simulator"].answer(question), name


#: Ids of all kinds, and some of which many share a bin.
IDS = (st.uuids() | st.integers(0, 400).map(lambda number: UUID(int=number * 8))).map(str)


@settings(max_examples=examples(60))
@given(st.lists(st.tuples(st.booleans(), IDS), max_size=60))
def test_both_go_alike_through_a_table_of_java(calls: list[tuple[bool, str]]) -> None:
    """What a JVM found: `test_rank_selector.py`, and of the simulator `test_vectors.py`."""
    product, simulator = ranks.KeyOrder(), weights.HashMap[int]()
    for merges, key in calls:
        (product.merge if merges else product.put)(key)
        (simulator.merge if merges else simulator.put)(key, 0)
    assert product.listed() == [*simulator]


@given(st.lists(IDS, max_size=8), st.floats(-1e30, 1e30), st.integers(-(2**40), 2**40))
def test_ids_and_numbers_of_java_are_alike(ids: list[str], number: float, whole: int) -> None:
    assert sorted(ids, key=ranks.in_order) == sorted(ids, key=weights.guid_order)
    assert ranks.single(number) == weights.float32(number)
    assert ranks.wrapped(whole) == weights.as_int(whole)
    small = number / 1e22
    assert ranks.rounded(small) == weights.math_round(small)
    for divisor in (0, number):
        assert str(ranks.quotient(whole, divisor)) == str(weights.divided(whole, divisor))


def test_both_find_the_same_conflicts_and_ties() -> None:
    """Of the simulator's ties, a VM takes along what is on its own host."""
    for question in UNITS["closure"].questions(4, examples(400)):
        asked = MEMBERS_ELSEWHERE.instead(question)
        assert conflicts_alike(asked, answers.collisions(asked), answers.conflicts(asked))
        tied = [one for one in answers.unified(asked) if asked.vms[0] in one]
        here = as_closure(asked, [*asked.vms, *(vm for one in tied for vm in one if vm != asked.vms[0])])
        assert sorted(answers.closure(asked)) == here


def test_both_enforce_hard_groups_in_the_same_order() -> None:
    """But for what the engine shuffles, and of groups of one size and least VM, which hashes decide."""
    for question in UNITS["enforcement"].questions(3, examples(400)):
        asked = MEMBERS_ELSEWHERE.instead(question)
        snapshot, cluster = asked.snapshot, asked.request["cluster"]
        placement = SnapshotPlacement(snapshot)
        rules = [one for one in constraints(snapshot, cluster) if not one.keeps(placement)]
        between = [(len(one.vms), min(one.vms)) for one in rules if one.hard and one.family == "vm_affinity"]
        if len({*between}) < len(between):
            continue
        movable = {vm.id for vm in snapshot.vms if vm.movable}
        state = engines.backend(snapshot).state
        left = [vm.id for vm in candidates(state, state.clusters[cluster], Random(0).shuffle)]
        for hard, tier in tiers(rules, placement, movable):
            if hard:
                assert {left.pop(0) for _ in tier} == {*tier}
        assert not left
