"""The differences from the engine that are meant: each a switch by which the engine is asked without its quirk.

A question to which a copy of ours answers otherwise is asked once more, with the copy's switches carried out. Only
if the engine then answers as we do is the difference the documented one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tests.engine.question import Question


def _same(question: Question) -> Question:
    return question


def _as_it_is(question: Question, answer: Any) -> Any:
    return answer


@dataclass(frozen=True)
class Switch:
    """`instead` gives the question without the quirk, `read` what its answer means for the one that was asked."""

    name: str
    #: What is different, and why; the quirk's name in docs/rules.md where it has one.
    says: str
    instead: Callable[[Question], Question] = _same
    read: Callable[[Question, Any], Any] = _as_it_is


def _with_all_hosts(question: Question) -> Question:
    hosts = sorted(host["id"] for host in question.state["hosts"])
    return replace(question, request={**question.request, "candidate_hosts": hosts})


def _candidates_only(question: Question, answer: Any) -> Any:
    return [host for host in answer if host in question.hosts] if isinstance(answer, list) else answer


CRASH_OF_A_HOST_ASIDE = Switch(
    "F1-crash",
    "The engine throws where a host that is no candidate holds a positive and a negative peer; ours answers as it"
    " does where that host is a candidate.",
    instead=_with_all_hosts,
    read=_candidates_only,
)

#: All of them, by name.
SWITCHES = {switch.name: switch for switch in (CRASH_OF_A_HOST_ASIDE,)}
