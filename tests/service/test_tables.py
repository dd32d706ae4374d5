"""Tables are aligned and fit a terminal; an answer to one who waits has a bar and pages."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from ovirt_service import screen
from ovirt_service.screen import answering
from ovirt_service.text import escaped, show_lines, show_table, table


def test_wide_characters_are_aligned_and_controls_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    show_table([("日本", "one\ntwo"), ("a\x1b[31m\u202e", 2)], ("name", "what"))
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


def test_a_narrow_terminal_breaks_lines_and_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "37")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    rows = [("shop-frontend", "positive, enforcing", "vm-1 on host-2")]
    shown = table(rows, ("group", "VM rule", "VMs"))
    plain = re.sub(r"\x1b\[\d*m", "", shown)
    assert [line.rstrip() for line in plain.splitlines()] == [
        "group          VM rule     VMs",
        "-------------  ----------  ----------",
        "shop-frontend  positive,   vm-1 on",
        "               enforcing   host-2",
    ]
    monkeypatch.setenv("COLUMNS", "20")
    narrow = re.sub(r"\x1b\[\d*m", "", table([("abcdefghijkl", "mnopqrstuvwx")], ("a", "b")))
    assert max(map(len, narrow.splitlines())) == 20


def test_lines_are_folded_at_words_on_a_terminal_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["  one two three four five six", "short", "a-word-that-is-longer-than-a-line"]
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("TERM", "xterm")
    show_lines(lines)
    assert capsys.readouterr().out.splitlines() == lines
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    show_lines(lines)
    assert capsys.readouterr().out.splitlines() == [
        "  one two three four",
        "    five six",
        "short",
        "a-word-that-is-longer-than-a-line",
    ]


def test_a_narrow_terminal_breaks_names_of_units_in_headers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    shown = table([("h1", 0, 12)], ("host", "SoftAffinityWeight", "HostAffinityWeight"))
    plain = re.sub(r"\x1b\[\d*m", "", shown)
    assert [line.split() for line in plain.splitlines()] == [
        ["host", "Soft", "Host"],
        ["Affinity", "Affinity"],
        ["Weight", "Weight"],
        ["-" * 4, "-" * 8, "-" * 8],
        ["h1", "0", "12"],
    ]


SHOWING = """
from ovirt_service.screen import answering
from ovirt_service.text import show_table
with answering("asking"):
    show_table([("h%d" % number, "refused") for number in range({rows})], ("host", "verdict"))
"""
WAITING = """
import time
from ovirt_service.screen import answering
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
    wide = f"from ovirt_service.text import show_table\nshow_table({rows}, ('x', 'y'))"
    assert all(len(line) <= 80 for line in seen(wide, NO_COLOR="1", TERM="dumb").splitlines())


@pytest.mark.system
def test_a_bar_shows_what_takes_over_a_second() -> None:
    assert "reading the engine" in seen(WAITING)
    assert "reading the engine" not in seen(WAITING.replace("1.5", "0"))


def test_where_there_is_no_terminal_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(screen, "_PATIENCE_SECONDS", 0.0)
    with answering("reading the engine"):
        print("answer")
    assert capfd.readouterr() == ("answer\n", "")
