"""Text is safe to be shown; tables are aligned and fit a terminal; one who waits has a bar and pages."""

import io
import json
import os
import pty
import re
import subprocess
import sys
import termios
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_service.text import answering, escaped, legible, show_lines, table, unbroken


def test_wide_characters_are_aligned_and_controls_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    print(table([("日本", "one\ntwo"), ("a\x1b[31m\u202e", 2)], ("name", "what")))
    assert capsys.readouterr().out.splitlines() == [
        "name               what",
        "-----------------  ----",
        "日本               one",
        "                   two",
        "a\\u001b[31m\\u202e  2",
    ]


def test_what_may_be_seen_stays() -> None:
    assert escaped("d\u00fcrfen wir?\nja") == "d\u00fcrfen wir?\nja"
    assert escaped("\t\x7f\udcff") == "\\u0009\\u007f\\udcff"


Terminal = Callable[[int], None]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Makes standard output a terminal of this many columns, without colours."""

    def make(columns: int) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        for name, value in (("COLUMNS", str(columns)), ("TERM", "xterm"), ("NO_COLOR", "1")):
            monkeypatch.setenv(name, value)

    return make


def drawn(rows: Sequence[Sequence[object]], headers: Sequence[str]) -> list[str]:
    """The lines of a table without their styles."""
    return [re.sub(r"\x1b\[\d*m", "", line).rstrip() for line in table(rows, headers).splitlines()]


def test_a_narrow_terminal_breaks_lines_and_no_names(terminal: Terminal) -> None:
    terminal(37)
    rows = [("shop-frontend", "positive, enforcing", "vm-1 on host-2")]
    assert drawn(rows, ("group", "VM rule", "VMs")) == [
        "group          VM rule     VMs",
        "-------------  ----------  ----------",
        "shop-frontend  positive,   vm-1 on",
        "               enforcing   host-2",
    ]
    terminal(20)
    assert max(map(len, drawn([("abcdefghijkl", "mnopqrstuvwx")], ("a", "b")))) == 20


def test_a_narrow_terminal_breaks_names_of_units_in_headers(terminal: Terminal) -> None:
    terminal(30)
    shown = drawn([("h1", 0, 12)], ("host", "SoftAffinityWeight", "HostAffinityWeight"))
    assert [line.split() for line in shown] == [
        ["host", "Soft", "Host"],
        ["Affinity", "Affinity"],
        ["Weight", "Weight"],
        ["-" * 4, "-" * 8, "-" * 8],
        ["h1", "0", "12"],
    ]


def test_lines_are_folded_at_words_on_a_terminal_alone(
    terminal: Terminal, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["  one two three four five six", "short", "a-word-that-is-longer-than-a-line"]
    show_lines(lines)
    assert capsys.readouterr().out.splitlines() == lines
    terminal(20)
    show_lines(lines)
    assert capsys.readouterr().out.splitlines() == [
        "  one two three four",
        "    five six",
        "short",
        "a-word-that-is-longer-than-a-line",
    ]


SHOWING = """
from ovirt_service.text import answering, table
with answering("asking"):
    print(table([("h%d" % number, "refused") for number in range({rows})], ("host", "verdict")))
"""
WAITING = """
import time
from ovirt_service.text import answering
with answering("reading the engine"):
    time.sleep(1.5)
"""


def seen(program: str, **environment: str) -> str:
    """All that a terminal of 24 lines and 80 columns gets."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    child = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", **environment},
    )
    os.close(theirs)
    text = b""
    try:
        while chunk := os.read(ours, 65536):
            text += chunk
    except OSError:
        pass  # Linux shows so that nobody writes any more
    os.close(ours)
    assert child.wait(60) == 0
    return text.decode()


@pytest.fixture
def pager(tmp_path: Path) -> str:
    file = tmp_path / "pager"
    file.write_text("#!/bin/sh\necho PAGED\ncat\n")
    file.chmod(0o755)
    return str(file)


def test_words_are_coloured_unless_that_is_unwanted(pager: str) -> None:
    red = "\x1b[31mrefused"
    assert red in seen(SHOWING.format(rows=2), NO_COLOR="", PAGER=pager)
    assert red not in seen(SHOWING.format(rows=2), NO_COLOR="1", PAGER=pager)


def test_only_what_does_not_fit_is_paged(pager: str) -> None:
    assert "PAGED" not in seen(SHOWING.format(rows=20), PAGER=pager)
    long = seen(SHOWING.format(rows=30), PAGER=pager)
    assert "PAGED" in long
    assert "h29" in long


def test_a_table_is_no_wider_than_the_terminal() -> None:
    rows = [("a" * 60 + " " + "b" * 60, "c")]
    wide = f"from ovirt_service.text import table\nprint(table({rows}, ('x', 'y')))"
    assert all(len(line) <= 80 for line in seen(wide, NO_COLOR="1", TERM="dumb").splitlines())


@pytest.mark.system
def test_a_bar_shows_what_takes_over_a_second() -> None:
    assert "reading the engine" in seen(WAITING)
    assert "reading the engine" not in seen(WAITING.replace("1.5", "0"))


def test_where_there_is_no_terminal_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ovirt_service.text._PATIENCE_SECONDS", 0.0)
    with answering("reading the engine"):
        print("answer")
    assert capfd.readouterr() == ("answer\n", "")


#: Any text, with many of the characters that are not to be seen.
TEXTS = st.text(st.characters() | st.characters(categories=["Cc", "Cf", "Cs", "Zl", "Zp"]))


@given(TEXTS)
def test_nothing_is_shown_but_what_can_be_seen_and_ends_of_lines(text: str) -> None:
    shown = escaped(text)
    assert all(
        unicodedata.category(one) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for one in shown if one != "\n"
    )
    assert shown.count("\n") == text.count("\n")


@given(TEXTS)
def test_what_can_be_seen_stays_as_it_is(text: str) -> None:
    seen = "".join(one for one in text if unicodedata.category(one)[0] not in "CZ")
    assert escaped(seen) == unbroken(seen) == seen


@given(st.dictionaries(TEXTS, st.lists(TEXTS)))
def test_json_still_says_the_same(reported: dict[str, list[str]]) -> None:
    text = json.dumps(reported, indent=2, ensure_ascii=False)
    # Two halves of a character are one to JSON, as they were before.
    assert json.loads(escaped(text)) == json.loads(json.dumps(reported, ensure_ascii=True))


@given(TEXTS)
def test_a_name_is_one_line_to_each_reader(text: str) -> None:
    assert len(unbroken(text).splitlines()) <= 1


def test_a_stream_writes_nothing_else() -> None:
    plain, styled = io.StringIO(), io.StringIO()
    for stream in (legible(plain), legible(styled, styled=True)):
        print("\x1b[31mbroken\x1b[0m", "\x9b2J\x1b[2J", file=stream)
        stream.writelines(["\u202e", "\n"])
    assert plain.getvalue() == ("\\u001b[31mbroken\\u001b[0m \\u009b2J\\u001b[2J\n\\u202e\n")
    assert styled.getvalue() == "\x1b[31mbroken\x1b[0m \\u009b2J\\u001b[2J\n\\u202e\n"
