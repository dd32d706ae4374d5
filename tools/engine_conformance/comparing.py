"""Asks the engine and our copies the same, and reports where they answer otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tools.engine_conformance.question import Question
from tools.engine_conformance.reading import raised
from tools.engine_conformance.unit import Copy, Unit

#: Gives the engine's answers to questions, in their order.
Ask = Callable[[Sequence[Question]], list[Any]]

_BATCH = 1000


@dataclass(frozen=True)
class Difference:
    """A question that a copy answers otherwise than the engine, for no reason that has a switch."""

    unit: str
    copy: str
    question: Question
    engine: Any
    ours: Any


@dataclass
class Comparison:
    """What came of the questions for one copy."""

    asked: int = 0
    #: How many documented differences there were, by their switches.
    switched: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)


def compare(
    unit: Unit, ask: Ask, questions: Iterable[Question], names: Iterable[str] | None = None
) -> dict[str, Comparison]:
    """Compare the copies of a unit, all or those named, with the engine."""
    chosen = {name: unit.copies[name] for name in names or unit.copies if name in unit.copies}
    found = {name: Comparison() for name in chosen}
    for batch in _batches(questions):
        answers = ask(batch)
        for name, copy in chosen.items():
            _compare_batch(unit, name, copy, ask, list(zip(batch, answers, strict=True)), found[name])
    return found


def _batches(questions: Iterable[Question]) -> Iterator[tuple[Question, ...]]:
    remaining = iter(questions)
    while batch := tuple(islice(remaining, _BATCH)):
        yield batch


def differs(unit: Unit, name: str, ask: Ask, question: Question) -> Difference | None:
    """The difference that a copy makes on one question, if it makes one."""
    found = compare(unit, ask, [question], [name])[name].differences
    return found[0] if found else None


def _compare_batch(
    unit: Unit, name: str, copy: Copy, ask: Ask, asked: list[tuple[Question, Any]], into: Comparison
) -> None:
    into.asked += len(asked)
    asked = _beforehand(copy, ask, asked, into)
    answered = [(question, engine, _ours(copy, question)) for question, engine in asked]
    open_ = [one for one in answered if not _agree(unit, *one)]
    changed = [_changed(copy, question) for question, _, _ in open_]
    again = ask([question for question, _ in changed])
    for (question, engine, ours), (_, names), answer in zip(open_, changed, again, strict=True):
        by_switch = _switched(unit, copy, question, answer, ours, names)
        into.switched.update(by_switch)
        if not by_switch:
            into.differences.append(Difference(unit.name, name, question, engine, ours))


def _beforehand(
    copy: Copy, ask: Ask, asked: list[tuple[Question, Any]], into: Comparison
) -> list[tuple[Question, Any]]:
    """The questions, with their answers, as the copy is asked them, too."""
    for switch in copy.beforehand:
        questions = [switch.instead(question) for question, _ in asked]
        others = [after for after, (before, _) in zip(questions, asked, strict=True) if after != before]
        into.switched.update({switch.name: len(others)} if others else {})
        answers = iter(ask(others))
        asked = [
            (after, answer if after == before else next(answers))
            for after, (before, answer) in zip(questions, asked, strict=True)
        ]
    return asked


def _changed(copy: Copy, question: Question) -> tuple[Question, list[str]]:
    """The question with all switches carried out, and those that made a difference to it."""
    names, changed = [], question
    for switch in copy.switches:
        before, changed = changed, switch.instead(changed)
        if changed != before:
            names.append(switch.name)
    return changed, names


def _switched(
    unit: Unit, copy: Copy, question: Question, answer: Any, ours: Any, names: list[str]
) -> list[str]:
    """The switches that explain why we answer otherwise; none if they do not."""
    if raised(answer):
        crashes = [switch.name for switch in copy.switches if switch.crash(answer["where"])]
        return [] if raised(ours) else crashes
    found = list(names)
    for switch in copy.switches:
        before, answer = answer, switch.read(question, answer)
        if answer != before:
            found.append(switch.name)
    return list(dict.fromkeys(found)) if _agree(unit, question, answer, ours) else []


def _ours(copy: Copy, question: Question) -> Any:
    try:
        return copy.answer(question)
    except Exception as error:  # a copy that cannot answer one question must not hide the others
        return {"raised": type(error).__name__, "where": str(error)}


def _agree(unit: Unit, question: Question, engine: Any, ours: Any) -> bool:
    if raised(engine) or raised(ours):
        return False
    return unit.agree(question, engine, ours)
