"""Brings answers into one form: what matters of them to an administrator, and what the engine leaves to chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.engine.question import Question

#: Of an answer of the engine or of ours, what two must have in common.
Reading = Any


def raised(answer: Any) -> bool:
    """Whether the engine threw."""
    return isinstance(answer, Mapping) and "raised" in answer


def as_hosts(question: Question, answer: Sequence[str]) -> Reading:
    """Which hosts, in whatever order."""
    return sorted(answer)


def as_tiers(question: Question, answer: Mapping[str, int]) -> Reading:
    """Hosts from best to worst, ties together; one that is not mentioned counts as 0, as in the selector."""
    weights = {host: answer.get(host, 0) for host in question.hosts}
    return [
        sorted(host for host in weights if weights[host] == weight) for weight in sorted(set(weights.values()))
    ]


def as_is(question: Question, answer: Any) -> Reading:
    return answer
