"""What a call is answered with, and what is remembered of it for the log."""

from __future__ import annotations

from array import array
from typing import Any

import msgspec

from ..pool.outcome import Outcome
from ..units import UnitKind
from .arguments import Question


class Asked(msgspec.Struct, frozen=True):
    """One unit that a call has asked, and what came of it."""

    unit: str
    outcome: Outcome


class Answer(msgspec.Struct, frozen=True):
    """An answer with its story: `result` is for the engine, `plugin_errors` for the administrator."""

    question: Question
    asked: list[Asked]
    result: Any
    plugin_errors: dict[str, list[str]]
    #: How many hosts are left, for the log.
    hosts_out: int

    @property
    def balance(self) -> list[Any] | None:
        """The VM to move and where to, where that was asked."""
        return self.result if self.question.kind is UnitKind.BALANCE else None

    def weights(self) -> dict[str, list[int]]:
        """The weights of each unit that scored, in the order of the hosts."""
        if self.question.kind is not UnitKind.SCORE:
            return {}
        scored = [asked for asked in self.asked if asked.outcome.failure is None]
        return {asked.unit: array("i", asked.outcome.body).tolist() for asked in scored}

    @property
    def result_code(self) -> int:
        """0 when every unit could be heard, else 1."""
        return int(any(asked.outcome.failure is not None for asked in self.asked))
