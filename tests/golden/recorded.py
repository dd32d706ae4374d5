"""Recorded answers: one file a command, in which a change of words is read as a diff."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from tests.paths import CHECKOUT, DATA

FOLDER = DATA / "golden"
RECORD_AGAIN = "python -m tests.golden"

#: What differs from run to run and says nothing: folders, ports, versions, moments, ids, durations.
_MASKS = (
    (re.compile(re.escape(str(CHECKOUT)) + r"\b"), "CHECKOUT"),
    (
        re.compile(
            r"(?:/[\w.-]+)*/(?:pytest-of-|golden-)[\w.-]+(?:/(?:pytest-|popen-|test_|folder|page)[\w.-]*)*"
        ),
        "FOLDER",
    ),
    (re.compile(r"127\.0\.0\.1:\d+"), "127.0.0.1:PORT"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z| UTC|[+-]\d\d:?\d\d)?"), "MOMENT"),
    (re.compile(r"\b20\d\d-\d\d-\d\d\b"), "DAY"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"), "UUID"),
    (re.compile(r"\b\d\.\d+(?:\.\d+)?(?:\.dev\d+)?(?:\+[\w.]+)? \(Python [^)]*\)"), "VERSION"),
    (
        re.compile(r'("(?:version|\w*(?:age|took|seconds|elapsed|since)\w*)": ?)-?\d+(?:\.\d+)?(?:e-?\d+)?'),
        r"\1N",
    ),
    (re.compile(r"\b\d+(?:\.\d+)? (?:ms|s)\b(?= (?:old|ago|behind|ahead))"), "N s"),
    (re.compile(r"\b1\d{9}(?:\d{3})?(?:\.\d+)?\b"), "EPOCH"),
)


class Answer(NamedTuple):
    """What a question was answered: the exit status of a command or the status of a page, and the text."""

    question: str
    status: int
    text: str

    def written(self) -> str:
        lines = masked(self.text).splitlines()
        return "".join(f"{line}\n" for line in (f"$ {self.question}", f"= {self.status}", *_indented(lines)))


def masked(text: str) -> str:
    """Text without what differs from run to run."""
    for pattern, word in _MASKS:
        text = pattern.sub(word, text)
    return text


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line.rstrip()}" if line.strip() else "" for line in lines]


def read(name: str) -> dict[str, str]:
    """The recorded answers of a file, by their questions."""
    file = FOLDER / f"{name}.txt"
    if not file.exists():
        return {}
    found = re.split(r"^(?=\$ )", file.read_text(), flags=re.MULTILINE)
    return {block.split("\n", 1)[0][2:]: block for block in found if block}


def write(name: str, answers: Iterable[Answer]) -> None:
    FOLDER.mkdir(exist_ok=True)
    blocks = {answer.question: answer.written() for answer in answers}
    (FOLDER / f"{name}.txt").write_text("".join(blocks.values()))
