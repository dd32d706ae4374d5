"""The comparison sees a planted difference, writes it down, and lets only documented ones pass.

In place of the engine stand functions that answer as it would, or otherwise on purpose.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ovirt_placement.model import state_file
from tools.engine_conformance import comparing
from tools.engine_conformance.__main__ import UNITS, write
from tools.engine_conformance.questions import Question, State, placing, random_state
from tools.engine_conformance.switches import CRASH_FOR_ALL, CRASH_OF_A_HOST_ASIDE

Answer = Callable[[Question], Any]


def roomy(question: Question) -> list[str]:
    """A filter of its own: hosts that can hand out more than 1000 MiB."""
    return [
        one["id"] for one in question.state["hosts"] if one["id"] in question.hosts and one["free_mb"] > 1000
    ]


def roomy_at_the_limit(question: Question) -> list[str]:
    """The same with a planted mistake."""
    hosts = question.state["hosts"]
    return [one["id"] for one in hosts if one["id"] in question.hosts and one["free_mb"] >= 1200]


def asking(answer: Answer) -> comparing.Ask:
    def ask(questions: Sequence[Question]) -> list[Any]:
        return [answer(question) for question in questions]

    return ask


def unit(
    ours: Answer, *switches: comparing.Switch, beforehand: Sequence[comparing.Switch] = ()
) -> comparing.Unit:
    copy = comparing.Copy(ours, switches, tuple(beforehand))
    return comparing.Unit("roomy", "filter", placing, {"copy": copy}, comparing.same(comparing.as_hosts))


def compared(ours: comparing.Unit, answer: Answer = roomy, questions: int = 500) -> comparing.Comparison:
    """What became of the unit's copy, where the engine answers like this."""
    return comparing.compare(ours, asking(answer), ours.questions(1, questions))["copy"]


def raising(where: str) -> Answer:
    return lambda question: {"raised": "NullPointerException", "where": where}


def test_a_copy_that_agrees_makes_no_difference() -> None:
    found = compared(unit(roomy))
    assert (found.asked, found.differences, found.switched) == (500, [], {})


def test_a_planted_difference_is_seen_and_written(tmp_path: Path) -> None:
    found = compared(unit(roomy_at_the_limit)).differences
    assert found
    write(tmp_path / "planted.json", found[0])
    written = json.loads((tmp_path / "planted.json").read_text())
    free = {host["id"]: host["free_mb"] for host in written["hosts"]}
    wrong = set(written["engine"]) ^ set(written["copy"])
    assert wrong
    assert all(1000 < free[host] < 1200 for host in wrong)


def test_a_switch_explains_only_what_it_changes() -> None:
    def instead(question: Question) -> Question:
        hosts = [{**one, "free_mb": 0} if one["free_mb"] < 1200 else one for one in question.state["hosts"]]
        return question.about({**question.state, "hosts": hosts})

    limit = comparing.Switch("limit", instead)
    found = compared(unit(roomy_at_the_limit, limit))
    assert not found.differences
    assert found.switched["limit"] > 0
    assert compared(unit(lambda question: [], limit)).differences


def test_both_are_asked_what_is_carried_out_beforehand() -> None:
    full = comparing.Switch("full", lambda question: question.about(_full(question)))
    found = compared(unit(roomy_at_the_limit, beforehand=[full]), questions=200)
    assert not found.differences
    assert found.switched["full"] > 0


def _full(question: Question) -> dict[str, Any]:
    return {**question.state, "hosts": [{**one, "free_mb": 0} for one in question.state["hosts"]]}


def test_an_exception_is_a_difference_on_either_side() -> None:
    assert len(compared(unit(roomy), raising("Somewhere.java"), 20).differences) == 20

    def broken(question: Question) -> list[str]:
        raise ValueError("no answer")

    found = compared(unit(broken), questions=20).differences
    assert found[0].ours == {"raised": "ValueError", "where": "no answer"}


def test_a_documented_crash_is_none() -> None:
    crashing = raising("NullPointerException at VmAffinityFilterPolicyUnit.java")
    found = compared(unit(roomy, CRASH_FOR_ALL), crashing, 20)
    assert (found.differences, found.switched) == ([], {CRASH_FOR_ALL.name: 20})


def test_a_crash_by_a_host_aside_is_asked_again_with_all_hosts() -> None:
    def engine(question: Question) -> Any:
        if len(question.hosts) < len(question.state["hosts"]):
            return {"raised": "NullPointerException", "where": "hostMap"}
        return roomy(question)

    found = compared(unit(roomy, CRASH_OF_A_HOST_ASIDE), engine, 200)
    assert not found.differences
    assert set(found.switched) == {CRASH_OF_A_HOST_ASIDE.name}


def question(**request: Any) -> Question:
    vms = [{"id": name, "cluster": "c" if name < "c" else "d", "host": "h"} for name in "abcd"]
    return Question("kind", {"vms": vms, "clusters": [{"id": "c"}, {"id": "d"}]}, request)


def test_what_the_engine_shuffles_may_come_in_any_order() -> None:
    runs = [["a", "b", "c"], ["b", "a", "c"]]
    assert comparing.same_order(question(), runs, ["b", "a", "c"])
    assert not comparing.same_order(question(), runs, ["a", "c", "b"])
    assert not comparing.same_order(question(), runs, ["a", "b"])
    assert not comparing.same_order(question(), runs, ["a", "b", "c", "d"])


def test_the_first_move_counts_without_the_source() -> None:
    engine = [{"vm": "a", "hosts": ["x", "y", "h"]}, {"vm": "b", "hosts": ["x", "h"]}]
    assert comparing.first_move(question(), engine, {"vm": "a", "hosts": ["x", "y"]})
    assert not comparing.first_move(question(), engine, {"vm": "a", "hosts": ["y", "x"]})
    assert not comparing.first_move(question(), engine, {"vm": "b", "hosts": ["x"]})
    assert not comparing.first_move(question(), engine, None)
    assert comparing.first_move(question(), [], None)


# -- The random states are states, the same for the same seed, and hold all that the comparison is about.
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
    return [vm for one in state["affinity_groups"] for vm in one["vms"] if cluster[vm] != one["cluster"]]


@pytest.mark.parametrize("unit", UNITS.values(), ids=list(UNITS))
def test_questions_are_about_what_is_there(unit: comparing.Unit) -> None:
    for question in unit.questions(1, 30):
        known = {one["id"] for name in ("clusters", "hosts", "vms") for one in question.state[name]}
        asked = [question.request.get("cluster"), *question.request.get("vms", ())]
        asked += question.request.get("candidate_hosts", ())
        assert {one for one in asked if one is not None} <= known
        assert json.loads(question.line())["kind"] == unit.kind
        assert question.snapshot.vms
