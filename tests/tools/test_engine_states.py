"""The random states are states, the same for the same seed, and hold all that the comparison is about."""

import json
from collections.abc import Callable
from random import Random

import pytest

from ovirt_placement.model import state_file
from tools.engine_conformance.__main__ import UNITS
from tools.engine_conformance.comparing import Unit
from tools.engine_conformance.questions import State, random_state

STATES = [random_state(Random(seed)) for seed in range(400)]


def test_every_state_is_one_that_a_state_file_may_hold() -> None:
    for state in STATES:
        state_file.loads(json.dumps(state).encode())


def test_a_seed_gives_the_same_state() -> None:
    assert random_state(Random(7)) == random_state(Random(7)) != random_state(Random(8))


@pytest.mark.parametrize(
    "holds",
    [
        pytest.param(lambda state: len(state["clusters"]) > 1, id="two clusters"),
        pytest.param(lambda state: state["pending"], id="VMs on their way"),
        pytest.param(lambda state: any("migrating_to" in vm for vm in state["vms"]), id="migrations"),
        pytest.param(lambda state: any(vm["status"] == "paused" for vm in state["vms"]), id="paused VMs"),
        pytest.param(lambda state: any(vm["hosted_engine"] for vm in state["vms"]), id="hosted engine"),
        pytest.param(lambda state: any(host["cpu_percent"] is None for host in state["hosts"]), id="no use"),
        pytest.param(lambda state: any(label["implicit"] for label in state["affinity_labels"]), id="labels"),
        pytest.param(lambda state: any(_elsewhere(state)), id="members of other clusters"),
    ],
)
def test_states_hold_what_units_look_at(holds: Callable[[State], object]) -> None:
    assert sum(bool(holds(state)) for state in STATES) > 10


def _elsewhere(state: State) -> list[str]:
    cluster = {vm["id"]: vm["cluster"] for vm in state["vms"]}
    return [
        vm for group in state["affinity_groups"] for vm in group["vms"] if cluster[vm] != group["cluster"]
    ]


@pytest.mark.parametrize("unit", UNITS.values(), ids=list(UNITS))
def test_questions_are_about_what_is_there(unit: Unit) -> None:
    for question in unit.questions(1, 30):
        known = {one["id"] for name in ("clusters", "hosts", "vms") for one in question.state[name]}
        asked = [question.request.get("cluster"), *question.request.get("vms", ())]
        asked += question.request.get("candidate_hosts", ())
        assert {one for one in asked if one is not None} <= known
        assert json.loads(question.line())["kind"] == unit.kind
        assert question.snapshot.vms
