"""Every line of the tables in docs/security.md and docs/failures.md names tests, which are there."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.paths import CHECKOUT

SECURITY = CHECKOUT / "docs" / "security.md"
FAILURES = CHECKOUT / "docs" / "failures.md"
#: What the table of security has room for, in lines and in characters of two screens.
_TWO_SCREENS = 100, 8_000
#: Who is to be in it.
_WHO = (
    *("no account", "an account without role", "a reader", "an administrator of one cluster"),
    *("a local user", "a plugin", "a program with a token", "the engine"),
)
_COMMENT = re.compile(r"<!--(.*?)-->")
_LINE_BELOW = "| ---"
_DEFINITION = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE)


def rows(page: Path) -> Iterator[str]:
    """All lines of tables but their heads."""
    lines = page.read_text().splitlines()
    for line, after in pairwise([*lines, ""]):
        is_head = _LINE_BELOW in (line[:5], after[:5])
        if line.startswith("|") and not is_head:
            yield line


def named_in(row: str) -> list[str]:
    return [name for comment in _COMMENT.findall(row) for name in comment.split()]


@cache
def defined(file: Path) -> frozenset[str]:
    """The tests of a file, those of classes with the name of their class."""
    body = ast.parse(file.read_text()).body
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    found = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    found |= {
        f"{one.name}::{node.name}"
        for one in classes
        for node in one.body
        if isinstance(node, ast.FunctionDef)
    }
    return frozenset(name for name in found if name.rpartition("::")[2].startswith("test_"))


def is_there(test: str) -> bool:
    path, _, name = test.partition("::")
    file = CHECKOUT / path
    return file.is_file() and name in defined(file)


@cache
def names_of_tests() -> frozenset[str]:
    """Those of all tests, without where they are."""
    files = (CHECKOUT / "tests").rglob("test_*.py")
    return frozenset(found for file in files for found in _DEFINITION.findall(file.read_text()))


def title(row: str) -> str:
    return " ".join(row.split("|")[1:3]).strip()


@pytest.mark.parametrize("row", list(rows(FAILURES)), ids=title)
def test_each_line_of_failures_is_backed_by_tests_that_are_there(row: str) -> None:
    named = named_in(row)
    assert named
    assert [test for test in named if not is_there(test)] == []


@pytest.mark.parametrize("row", list(rows(SECURITY)), ids=title)
def test_each_line_of_security_names_tests_that_are_there_and_where_they_run(row: str) -> None:
    *_, shown, end = row.split("|")
    assert end == ""
    words = shown.split()
    tests = [word.strip("`") for word in words if word.startswith("`")]
    assert tests
    assert [test for test in tests if test not in names_of_tests()] == []
    assert {word for word in words if not word.startswith("`")} <= {"P", "T", "A"}


def test_security_fits_two_screens_and_speaks_of_everybody() -> None:
    text = SECURITY.read_text()
    assert len(text.splitlines()) <= _TWO_SCREENS[0]
    assert len(text) <= _TWO_SCREENS[1]
    who = [row.split("|")[1].strip() for row in rows(SECURITY)]
    assert [one for one in _WHO if not any(each.startswith(one) for each in who)] == []
    assert {"P", "T", "A"} <= {*text.split()}


def test_there_are_lines() -> None:
    assert len(list(rows(FAILURES))) > 25
    assert len(list(rows(SECURITY))) > 15
