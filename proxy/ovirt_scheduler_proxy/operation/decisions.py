"""Records every decision as one line of JSON, to show later why a VM runs where it runs."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import msgspec

from ..contract.answer import Answer
from ..settings import Decisions
from .logs import BatchedHandler
from .record_file import RecordFile


class DecisionLog:
    """A rotated JSON-lines file; one that cannot be written costs no decision."""

    def __init__(self, file: Path, settings: Decisions) -> None:
        self._file = RecordFile(file, settings.file_mib << 20, settings.files, settings.days)
        self._file.open()
        self._handler = BatchedHandler(self._file.write)
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
                "reasons": _reasons(answer),
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
        self._file.close()


def _reasons(answer: Answer) -> dict[str, Any]:
    """By unit, why it dropped hosts, in its own words; what is no JSON is left out."""
    found: dict[str, Any] = {}
    for asked in answer.asked:
        if asked.outcome.reasons:
            try:
                # Decoded, so that whatever a plugin wrote is one line of the record.
                found[asked.unit] = msgspec.json.decode(asked.outcome.reasons)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                continue
    return found
