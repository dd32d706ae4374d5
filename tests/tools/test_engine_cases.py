"""The smallest states on which a copy of ours once answered otherwise than the engine's own classes.

`tests/data/engine-cases` has each with the question and the engine's answer.
"""

import json
from functools import reduce
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot, state_file
from ovirt_placement.rules.affinity.conflicts import find_conflicts
from ovirt_placement.rules.affinity.groups import hard_positive_group_of
from ovirt_placement.rules.catalogue import constraints
from ovirt_placement.rules.elements import ranks
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.elements.ranks import order_hosts
from ovirt_placement.rules.elements.verdict import BalanceMove, Request
from ovirt_placement.rules.engine_affinity import tiers
from ovirt_placement.rules.engine_affinity import tiers as tiers_of_engine
from ovirt_placement.rules.engine_weights import ENGINES_WEIGHTS
from ovirt_placement.rules.failover.check import by_engine
from ovirt_placement.rules.load import LoadLimits, balance_load, proposals
from ovirt_simulator.core import affinity
from ovirt_simulator.scheduler import weights
from ovirt_simulator.scheduler.placing import candidates
from tests.examples import examples
from tests.paths import DATA
from tests.placement.rules import strategies
from tests.simulator.core import engines
from tools.engine_conformance import answers
from tools.engine_conformance.__main__ import UNITS
from tools.engine_conformance.comparing import Unit, as_closure, as_conflicts, as_tiers, conflicts_alike
from tools.engine_conformance.questions import Question
from tools.engine_conformance.switches import MEMBERS_ELSEWHERE

#: What stands next to the state: the question, and who answered what.
ALONGSIDE = {"name", "engine_class", "request", "engine", "product", "simulator"}
CASES = {path.stem: json.loads(path.read_text()) for path in (DATA / "engine-cases").glob("*.json")}

#: Those of units that the product and the simulator both have a copy of.
COPIED = {
    "cpu-larger-vm-runs-there": "cpu",
    "cpu-overloaded": "cpu-overloaded",
    "even-cpu-no-statistics": "even-cpu",
    "even-cpu-threads": "even-cpu",
    "even-cpu-unknown-use": "even-cpu",
    "even-memory-own": "even-memory",
    "even-memory-steps": "even-memory",
    "foreign-positive-peer": "vm-affinity",
    "host-groups-of-two-vms": "vm-to-host-weight",
    "memory-overhead": "memory",
    "memory-paused": "memory",
    "preferred-of-running-vm": "preferred-hosts",
    "priority-of-eight-decimals": "vm-to-host-weight",
    "rank-two-hosts-in-one-bin": "rank-selector",
}
BALANCES = {"even-order-of-sources", "even-threads", "even-whole-percent"}
ENFORCEMENT = {"enforcement-ids-are-signed", "enforcement-unified-set"}
CLOSURE = "closure-by-a-group-of-another-cluster"
CONFLICT = "conflict-pair-other-way-round"
SCHEDULING = "schedule-units-that-tie"
HA_CHECKS = {"ha-check-hosts-by-id", "ha-check-pending-twice"}


def question(name: str) -> Question:
    state = {key: value for key, value in CASES[name].items() if key not in ALONGSIDE}
    return Question("case", state, CASES[name]["request"])


def engine(name: str) -> Any:
    """What the engine's class said."""
    return CASES[name]["engine"]


def test_every_state_is_asked_about() -> None:
    assert {*COPIED, *BALANCES, *ENFORCEMENT, CLOSURE, CONFLICT, SCHEDULING, *HA_CHECKS} == set(CASES)


@pytest.mark.parametrize("copy", ["product", "simulator"])
@pytest.mark.parametrize("name", COPIED)
def test_copies(name: str, copy: str) -> None:
    asked, unit = question(name), UNITS[COPIED[name]]
    found = unit.copies[copy].answer(asked)
    assert (as_tiers(asked, found) if unit.kind == "weight" else found) == engine(name)


@pytest.mark.parametrize("name", sorted(BALANCES))
def test_balances(name: str) -> None:
    """The engine lets a VM stay where it is, too, which ours need not say."""
    asked = question(name)
    state, cluster = asked.snapshot, asked.request["cluster"]
    limits = LoadLimits(high_utilization=asked.request["HighUtilization"])
    hosts = tuple(host.id for host in state.hosts)
    expected = [
        BalanceMove(one["vm"], tuple(host for host in one["hosts"] if host != state.vm_by_id[one["vm"]].host))
        for one in engine(name)
    ]
    assert list(proposals(state, cluster, hosts, limits, frozenset(hosts))) == expected
    moved = balance_load(state, cluster, hosts, limits, frozenset(hosts))
    assert moved == (expected[0] if expected else None)


@pytest.mark.parametrize("name", sorted(ENFORCEMENT))
def test_enforcement_of_the_product(name: str) -> None:
    """Each order that the engine's lots gave is one of ours, where only the order within a tier is by lot."""
    asked = question(name)
    placement = SnapshotPlacement(asked.snapshot)
    rules = [one for one in constraints(asked.snapshot, asked.request["cluster"]) if not one.keeps(placement)]
    movable = {vm.id for vm in asked.snapshot.vms if vm.movable}
    found = [tier for _, tier in tiers_of_engine(rules, placement, movable)]
    for order in engine(name):
        left = list(order)
        for tier in found:
            assert {left.pop(0) for _ in tier} == {*tier}
        assert not left


@pytest.mark.parametrize("name", sorted(ENFORCEMENT))
def test_enforcement_of_the_simulator(name: str) -> None:
    """All orders that the engine's lots gave come up, and no other."""
    asked = question(name)
    orders = set()
    for seed in range(50):
        backend = engines.backend(asked.snapshot, seed)
        cluster = backend.state.clusters[asked.request["cluster"]]
        orders.add(tuple(vm.id for vm in candidates(backend.state, cluster, backend.random.shuffle)))
    assert orders == set(map(tuple, engine(name)))


def test_scheduling() -> None:
    """Weights that are the same for all hosts still decide in which order equal ones come."""
    asked = question(SCHEDULING)
    hosts = tuple(sorted(host.id for host in asked.snapshot.hosts if host.up))
    request = Request(tuple(asked.request["vms"]), hosts)
    weights = {one.unit: one.scores(asked.snapshot, request) for one in ENGINES_WEIGHTS}
    best, other = order_hosts(hosts, {**weights}, {one.unit: one.factor for one in ENGINES_WEIGHTS})
    assert best.host == engine(SCHEDULING) == answers.schedule(asked)["best"]
    assert best.points == other.points


def test_closure() -> None:
    """A group of another cluster ties no VMs to each other."""
    asked = question(CLOSURE)
    (vm,) = asked.vms
    assert vm not in hard_positive_group_of(asked.snapshot)
    assert [vm] == list(affinity.closure(engines.backend(asked.snapshot).state, vm)) == engine(CLOSURE)


def test_conflict() -> None:
    """The same VMs and host; of groups, ours names but those that the conflict needs (C4)."""
    asked = question(CONFLICT)
    assert as_conflicts(asked, answers.collisions(asked)) == as_conflicts(asked, engine(CONFLICT))
    (found,) = find_conflicts(asked.snapshot, asked.request["cluster"])
    (engines_own,) = engine(CONFLICT)
    assert (found.type, list(found.vms), list(found.hosts)) == tuple(
        engines_own[key] for key in ("type", "vms", "hosts")
    )
    assert {*found.groups} < {*engines_own["groups"]}


@pytest.mark.parametrize("name", sorted(HA_CHECKS))
def test_ha_checks(name: str) -> None:
    """The engine's own check, but for its faults: it deducts pending memory twice, ours once (HC4)."""
    asked = question(name)
    (engines_own,) = engine(name)
    found = by_engine(asked.snapshot, asked.request["cluster"], 1)
    assert found.safe is (engines_own["safe"] or name == "ha-check-pending-twice")


# -- Of some units the product and the simulator have a copy each: they share nothing and agree.
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
    assert (ranks.single(number), ranks.wrapped(whole)) == (weights.float32(number), weights.as_int(whole))
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
