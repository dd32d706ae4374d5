"""Doubts: an answer that suddenly lacks most of what was known is believed when it comes twice."""

from __future__ import annotations

import pytest

from ovirt_placement.engine.reading.doubts import RULES, Doubts, Implausible

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
