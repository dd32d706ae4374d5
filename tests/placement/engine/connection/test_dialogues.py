"""Dialogues get on side by side, within a bound, and each hears what was answered or raised for it."""

import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from ovirt_placement.engine.connection.dialogues import Dialogue, Dialogues


class Asked:
    """Questions that are answered when a test says so."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self._lock = threading.Lock()
        self._now = 0
        self.most = 0

    def __call__(self, answer: int) -> int:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        self.released.wait(60)
        with self._lock:
            self._now -= 1
        return answer


@pytest.fixture
def asked() -> Iterator[Asked]:
    made = Asked()
    yield made
    made.released.set()


def adding(ask: Callable[[int], int], *numbers: int) -> Dialogue[int]:
    total = 0
    for number in numbers:
        total += yield partial(ask, number)
    return total


def failing() -> Dialogue[str]:
    try:
        yield partial(int, "no number")
    except ValueError:
        raise KeyError("raised again") from None
    return "never"


def results(dialogues: Dialogues[str]) -> dict[str, int]:
    return {key: outcome.result() for key, outcome in dialogues.pop_all_ended()}


def test_each_dialogue_has_its_own_answers(asked: Asked) -> None:
    asked.released.set()
    dialogues: Dialogues[str] = Dialogues()
    for count in range(20):
        dialogues.begin(str(count), adding(asked, *range(count)))
    dialogues.wait()
    assert results(dialogues) == {str(count): sum(range(count)) for count in range(20)}
    assert results(dialogues) == {}


def test_no_more_questions_are_asked_at_once_than_allowed(asked: Asked) -> None:
    dialogues: Dialogues[str] = Dialogues(at_once=3, patience_seconds=0.05)
    for count in range(10):
        dialogues.begin(str(count), adding(asked, 1, 1))
    dialogues.wait()
    assert results(dialogues) == {}
    asked.released.set()
    found: dict[str, int] = {}
    while len(found) < 10:
        dialogues.wait()
        found |= results(dialogues)
    assert asked.most == 3


def test_a_late_one_is_not_waited_for_again_and_calls_for_who_waited_and_no_other_does(asked: Asked) -> None:
    came_late = threading.Event()
    dialogues: Dialogues[str] = Dialogues(patience_seconds=0.05, came_late=came_late.set)
    dialogues.begin("slow", adding(asked, 1))
    dialogues.wait()
    dialogues.begin("quick", adding(lambda number: number, 2))
    dialogues.wait()
    assert results(dialogues) == {"quick": 2}
    assert ("slow" in dialogues, dialogues.late, came_late.is_set()) == (True, {"slow"}, False)
    asked.released.set()
    assert came_late.wait(60)
    while (outcome := dialogues.pop_ended("slow")) is None:
        dialogues.wait()
    assert (outcome.result(), outcome.late) == (1, True)
    assert dialogues.late == set()


def test_what_is_raised_is_heard_by_the_dialogue_and_then_by_who_takes_it() -> None:
    dialogues: Dialogues[str] = Dialogues()
    dialogues.begin("fails", failing())
    dialogues.wait()
    outcome = dialogues.pop_ended("fails")
    assert outcome is not None
    with pytest.raises(KeyError, match="raised again"):
        outcome.result()
