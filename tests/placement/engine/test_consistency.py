"""A snapshot names nothing that vanished between two answers; one that lacks most of all is doubted."""

from operator import is_
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_placement.engine.requests import RULES, Doubts, Implausible
from ovirt_placement.model import Nic, state_file
from ovirt_placement.model.state_file import consistent
from tests.placement.model.full_state import full_state, loaded

LISTS = ["data_centers", "hosts", "vms", "networks", "vnic_profiles", "affinity_labels"]
WHOLE = replace(
    loaded(full_state()), pending=(), placement_keys=(), frozen_keys=(), sticky_copies=(), placement_rules=()
)


@given(st.sets(st.sampled_from([*LISTS, "clusters"])))
def test_whatever_vanished_is_named_no_more(vanished: set[str]) -> None:
    groups: Any = () if "clusters" in vanished else WHOLE.affinity_groups  # they come within their clusters
    torn = replace(WHOLE, affinity_groups=groups, **dict.fromkeys(vanished, ()))
    torn = replace(torn, vms=tuple(replace(vm, migrating_to=None) for vm in torn.vms))
    repaired = consistent(torn)
    assert state_file.loads(state_file.dumps(repaired)) == repaired


def test_what_is_whole_stays_and_is_the_same_object() -> None:
    whole = loaded(full_state())
    assert consistent(whole) == whole
    first = WHOLE.vms[0]
    after = consistent(replace(WHOLE, vms=(replace(first, host="gone"), *WHOLE.vms[1:])))
    assert after.vms[0].host is None
    assert all(one is other for one, other in zip(after.vms[1:], WHOLE.vms[1:], strict=True))
    assert all(map(is_, after.affinity_groups, WHOLE.affinity_groups))


NICS = (Nic(id="n", name="n", vnic_profile="gone"),)


@pytest.mark.parametrize(
    "change", [{"host": "gone"}, {"migrating_to": "gone"}, {"pinned_hosts": ("gone",)}, {"nics": NICS}]
)
def test_whatever_a_vm_names_is_there(change: dict[str, Any]) -> None:
    repaired = consistent(replace(WHOLE, vms=(*WHOLE.vms[1:], replace(WHOLE.vms[0], **change))))
    assert state_file.loads(state_file.dumps(repaired)) == repaired


TEN = [f"v{number}" for number in range(10)]


def doubts_about(*answers: list[str]) -> list[bool]:
    """Say of each answer in a row whether it was doubted."""
    doubts, found = Doubts(), []
    for ids in answers:
        try:
            doubts.check({"VMs": ids})
            found.append(False)
        except Implausible:
            found.append(True)
    return found


@pytest.mark.parametrize(
    ("answers", "doubted"),
    [
        ([[]], [False]),  # nothing was known
        ([TEN, []], [False, True]),
        ([TEN, [], []], [False, True, False]),
        ([TEN, [], TEN, []], [False, True, False, True]),
        ([TEN, [], [], [], TEN, []], [False, True, False, False, False, True]),
        ([TEN, TEN[:5]], [False, False]),
        ([TEN, TEN[:4]], [False, True]),
        ([TEN, ["other", *TEN[:4]]], [False, True]),
        ([["a", "b", "c"], ["a"]], [False, False]),  # two may go at once
        ([["a"], []], [False, True]),
    ],
)
def test_most_of_what_was_known_is_not_gone_at_the_first_word(
    answers: list[list[str]], doubted: list[bool]
) -> None:
    assert doubts_about(*answers) == doubted


def test_kinds_are_doubted_by_themselves_and_reported() -> None:
    doubts = Doubts()
    doubts.check({"VMs": TEN, "hosts": ["h"]})
    with pytest.raises(Implausible, match="lists but 2 of 10 VMs that it had: it is asked again before"):
        doubts.check({"VMs": TEN[:2], "hosts": ["h"]})
    with pytest.raises(Implausible, match="0 of 1 hosts"):
        doubts.check({"VMs": TEN[:2], "hosts": []})
    doubts.check({"VMs": TEN[:2], "hosts": []})
    doubts.check({"hosts": ["h"]})  # a reading of hosts says nothing of VMs


@pytest.mark.parametrize(
    ("kind", "answers", "left"),
    [
        ("affinity groups", [[], []], 0),  # the user has removed the last one
        ("affinity groups", [[], ["g"]], 1),
        ("affinity labels", [[], []], 0),
        ("VMs", [[], []], 1),  # nobody removes all: the next reading shows it
    ],
)
def test_what_a_user_may_remove_all_of_is_confirmed_at_once(
    kind: str, answers: list[list[str]], left: int
) -> None:
    doubts = Doubts()
    doubts.check({kind: ["g"]})

    def read() -> int:
        try:
            return len(
                doubts.confirm(
                    lambda: answers.pop(0), lambda ids: {kind: ids}, lambda one: one.kinds <= RULES
                )
            )
        except Implausible:
            return 1

    assert (read(), len(answers)) == (left, 0 if kind in RULES else 1)
