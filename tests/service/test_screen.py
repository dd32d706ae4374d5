"""What a person sees at a terminal: colours, a pager for what is long, a bar for what is slow."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from ovirt_service import screen
from ovirt_service.screen import answering

SHOWING = """
from ovirt_service.screen import answering
from ovirt_service.tables import show
with answering("asking"):
    show([("h%d" % number, "refused") for number in range({rows})], ("host", "verdict"))
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
    wide = "from ovirt_service.tables import show\nshow([('a' * 60 + ' ' + 'b' * 60, 'c')], ('x', 'y'))"
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
