"""Holds dialogues with the engine side by side, so that one slow answer holds up nothing else.

Only the asking happens in threads. All else of a dialogue runs in the thread that owns the dialogues: it
needs no locks.
"""

import queue
import time
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from ovirt_service.process import BackgroundThread

#: More questions than these wait for one another.
_AT_ONCE: Final = 8
#: For so long answers are waited for; while others are late already, not as long.
PATIENCE_SECONDS: Final = 2.0
_SHORT_PATIENCE_SECONDS: Final = 0.5

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
#: It yields what is to be asked, and is sent the answer, or has raised what the asking raised.
Dialogue = Generator[Callable[[], Any], Any, T]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a dialogue ended."""

    #: What it returned, unless it raised an error.
    value: Any
    error: Exception | None
    #: Whether it took longer than it was waited for.
    late: bool

    def result(self) -> Any:
        """What the dialogue returned; raises what it raised."""
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(frozen=True, slots=True)
class _Answer(Generic[K]):
    key: K
    value: Any = None
    error: Exception | None = None


class Dialogues(Generic[K]):
    """Several dialogues, by their keys; for one thread, which calls `wait` for them to get on."""

    def __init__(
        self,
        at_once: int = _AT_ONCE,
        patience_seconds: float = PATIENCE_SECONDS,
        came_late: Callable[[], None] = lambda: None,
    ) -> None:
        """`came_late` is called, in any thread, when there is an answer for which `wait` did not wait."""
        self._at_once = at_once
        self._patience_seconds = patience_seconds
        self._came_late = came_late
        self._dialogues: dict[K, Dialogue[Any]] = {}
        #: Questions that wait for their turn, and how many are being asked.
        self._waiting: deque[tuple[K, Callable[[], Any]]] = deque()
        self._asking = 0
        self._answers: queue.SimpleQueue[_Answer[K]] = queue.SimpleQueue()
        self._late: set[K] = set()
        self._ended: dict[K, Outcome] = {}

    def __contains__(self, key: K) -> bool:
        """Whether a dialogue is under way, or has ended and was not taken yet."""
        return key in self._dialogues or key in self._ended

    @property
    def late(self) -> frozenset[K]:
        """Those under way that are not waited for any more."""
        return frozenset(self._late)

    @property
    def under_way(self) -> frozenset[K]:
        """Those that have not ended."""
        return frozenset(self._dialogues)

    def begin(self, key: K, dialogue: Dialogue[Any]) -> None:
        """Begin a dialogue; one with this key must not be among them."""
        self._dialogues[key] = dialogue
        self._go_on(_Answer(key))

    def wait(self) -> None:
        """Let all get on until those that are not late have ended, or become late.

        They get on in the order in which they began, whichever answer comes first.
        """
        shortest = min(_SHORT_PATIENCE_SECONDS, self._patience_seconds)
        self._get_on_until(time.monotonic() + (shortest if self._late else self._patience_seconds))
        self._late.update(self._dialogues)
        # An answer that came before its dialogue counted as late did not call `came_late`.
        self._get_on_until(time.monotonic())

    def pop_all_ended(self) -> Iterator[tuple[K, Outcome]]:
        """How dialogues ended, by their keys; each is taken once."""
        while self._ended:
            key = next(iter(self._ended))
            yield key, self._ended.pop(key)

    def pop_ended(self, key: K) -> Outcome | None:
        """How this one ended; None while it is under way."""
        return self._ended.pop(key, None)

    def _get_on_until(self, until: float) -> None:
        while answers := self._answers_until(until):
            began = [*self._dialogues]
            for answer in sorted(answers, key=lambda answer: began.index(answer.key)):
                self._go_on(answer)

    def _answers_until(self, until: float) -> list[_Answer[K]]:
        """Those to what is asked now, as far as they are there by then; of late ones only what is there."""
        answers: list[_Answer[K]] = []
        awaited = self._dialogues.keys() - self._late
        while True:
            left = until - time.monotonic()
            try:
                answer = (
                    self._answers.get(timeout=left) if awaited and left > 0 else self._answers.get_nowait()
                )
            except queue.Empty:
                return answers
            answers.append(answer)
            awaited.discard(answer.key)
            self._asking -= 1
            self._ask_waiting()

    def _go_on(self, answer: _Answer[K]) -> None:
        try:
            self._waiting.append((answer.key, self._next_question(answer)))
        except StopIteration as end:
            self._end_dialogue(answer.key, end.value, None)
        except Exception as error:  # raised to the taker of the outcome
            self._end_dialogue(answer.key, None, error)
        self._ask_waiting()

    def _next_question(self, answer: _Answer[K]) -> Callable[[], Any]:
        dialogue = self._dialogues[answer.key]
        return dialogue.send(answer.value) if answer.error is None else dialogue.throw(answer.error)

    def _end_dialogue(self, key: K, value: Any, error: Exception | None) -> None:
        del self._dialogues[key]
        self._ended[key] = Outcome(value, error, key in self._late)
        self._late.discard(key)

    def _ask_waiting(self) -> None:
        while self._waiting and self._asking < self._at_once:
            self._asking += 1
            question = self._waiting.popleft()
            BackgroundThread(target=self._answer, args=question, name="asking").start()

    def _answer(self, key: K, question: Callable[[], Any]) -> None:
        try:
            answer = _Answer(key, question())
        except Exception as error:  # it is raised in the dialogue
            answer = _Answer(key, error=error)
        self._answers.put(answer)
        if key in self._late:
            self._came_late()
