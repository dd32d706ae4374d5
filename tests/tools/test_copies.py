"""Of some of the engine's units the product and the simulator have a copy each: they share nothing and agree.

With the engine itself both are compared by `make engine-conformance`, which needs the engine's classes.
"""

from __future__ import annotations

import json
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.model.files import state_file
from tests.examples import examples
from tests.placement.rules import strategies
from tools.engine_conformance.comparing import Unit
from tools.engine_conformance.questions import Question
from tools.engine_conformance.units import UNITS

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
