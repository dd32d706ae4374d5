"""Help fits the terminal: descriptions and options are filled, examples are left as they can be copied."""

from __future__ import annotations

import pytest

from tests.docs.parsers import PARSERS, every

ALL = [each for parser in PARSERS.values() for each in every(parser)]


@pytest.mark.parametrize("columns", [80, 100, 200])
def test_help_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for parser in ALL:
        filled, _, examples = parser.format_help().partition("\nexamples:\n")
        assert [line for line in filled.splitlines() if len(line) > columns] == [], parser.prog
        assert " ".join((parser.description or "").split()) in " ".join(filled.split()), parser.prog
        assert f"examples:\n{examples}".rstrip() == (parser.epilog or "examples:\n").rstrip(), parser.prog
