"""Commands and page answer as they are recorded."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from jsonschema_rs import ValidationError

from tests.configuration import PASSWORD
from tests.golden import questions, recorded
from tests.golden.recorded import RECORD_AGAIN, Answer
from tests.placement.cli.documents import defined
from tests.web.conftest import STATE


def check(answers: Iterable[tuple[str, Answer]]) -> None:
    """Hold answers against what is recorded of their questions; one that is in no record is at fault too."""
    records: dict[str, dict[str, str]] = {}
    for file, answer in answers:
        known = records.setdefault(file, recorded.read(file))
        assert answer.written() == known.get(answer.question, ""), f"if that is meant: {RECORD_AGAIN}"


def meets_schema(text: str) -> bool:
    """Whether it is an answer of some kind, or of one of the definitions that bear none."""
    for definition in (None, "History", "Pauses", "Plans", "Simulations", "WaitingPlans", "WhyNot"):
        with suppress(ValidationError):
            defined(text, definition)
            return True
    return False


def marked(name: str) -> object:
    """The state in which a policy is simulated step by step takes longer than the others."""
    return pytest.param(name, marks=pytest.mark.system) if name == "engine-moves-a-vm-to-and-fro" else name


@pytest.mark.parametrize("name", [*map(marked, questions.STATES)])
def test_commands_answer_about_a_state_as_recorded(name: str) -> None:
    check(questions.answers(name))


@pytest.mark.system
def test_commands_answer_on_an_engine_as_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVIRT_PASSWORD", PASSWORD)
    answers = [*questions.answers_on_engine(tmp_path)]
    check(answers)
    documents = [answer for _, answer in answers if answer.question.endswith("--json") and answer.status != 2]
    assert [answer.question for answer in documents if not meets_schema(answer.text)] == []


@pytest.mark.system
def test_the_page_answers_as_recorded(tmp_path: Path) -> None:
    check(questions.answers_of_page(tmp_path, STATE))


def test_nothing_is_recorded_that_is_not_asked() -> None:
    asked = {
        line
        for name in questions.STATES
        for line in (f"{line} --state {name}" for line in questions.lines(name))
    }
    of_states = {
        question
        for file in recorded.FOLDER.glob("*.txt")
        for question in recorded.read(file.stem)
        if " --state " in question
    }
    assert of_states == asked
