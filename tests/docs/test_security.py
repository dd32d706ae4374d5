"""Every line of the tables in docs/security.md names tests, and each of them is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from tests.paths import CHECKOUT

PAGE = CHECKOUT / "docs" / "security.md"
_COMMENT = re.compile(r"<!--(.*?)-->")
_LINE_BELOW = "| ---"


def rows() -> Iterator[str]:
    """All lines of tables but their heads."""
    lines = PAGE.read_text().splitlines()
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
    found = {node.name for node in body if isinstance(node, ast.FunctionDef)}
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


@pytest.mark.parametrize("row", list(rows()), ids=lambda row: " ".join(row.split("|")[1:3]).strip())
def test_each_line_is_backed_by_tests_that_are_there(row: str) -> None:
    named = named_in(row)
    assert named
    assert [test for test in named if not is_there(test)] == []


def test_there_are_lines_and_a_test_that_is_not_there_is_noticed() -> None:
    assert len(list(rows())) > 40
    assert named_in("| a | b <!-- x::y z::w --> |") == ["x::y", "z::w"]
    assert is_there("tests/docs/test_security.py::test_each_line_is_backed_by_tests_that_are_there")
    assert not is_there("tests/docs/test_security.py::test_of_nothing")
    assert not is_there("tests/docs/test_security.py::rows")
    assert not is_there("tests/docs/test_nowhere.py::test_of_nothing")
