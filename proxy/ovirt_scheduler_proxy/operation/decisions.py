"""Records every decision as one line of JSON, for whoever wants to know later why a VM runs where it runs."""

from __future__ import annotations

import logging
import time

import msgspec

from ..contract.answer import Answer
from ..settings import Decisions
from .logs import open_rotated


class DecisionLog:
    """A rotated JSON-lines file.  Raises `UserError` when it cannot be opened."""

    def __init__(self, settings: Decisions) -> None:
        self._handler = open_rotated(settings.file, settings.file_mib, settings.files)
        self._handler.setFormatter(logging.Formatter("%(message)s"))

    def record(self, request_id: str, answer: Answer, seconds: float, fallen: dict[str, list[str]]) -> None:
        question = answer.question
        line = msgspec.json.encode(
            {
                "time": round(time.time(), 3),
                "request": request_id,
                "method": question.method,
                "vm": question.vm,
                "properties": question.properties,
                "hosts": question.hosts,
                "fallen": fallen,
                "weights": answer.weights(),
                "balance": answer.balance,
                "failures": {
                    asked.unit: asked.outcome.failure.cause.value
                    for asked in answer.asked
                    if asked.outcome.failure is not None
                },
                "failure_sentences": {
                    asked.unit: asked.outcome.failure.sentence
                    for asked in answer.asked
                    if asked.outcome.failure is not None
                },
                "seconds": round(seconds, 6),
                "unit_seconds": {asked.unit: round(asked.outcome.seconds, 6) for asked in answer.asked},
                "state_age_seconds": {
                    asked.unit: round(asked.outcome.state_age_seconds, 3)
                    for asked in answer.asked
                    if asked.outcome.state_age_seconds is not None
                },
            }
        )
        self._handler.handle(logging.makeLogRecord({"msg": line.decode(), "levelno": logging.INFO}))

    def close(self) -> None:
        self._handler.close()
