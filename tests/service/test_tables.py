"""Tables are aligned by what characters take on a terminal, and nothing in a name can steer one."""

from __future__ import annotations

import re
import sys

import pytest

from ovirt_service.tables import escaped, show, show_lines, table


def test_wide_characters_are_aligned_and_controls_are_reported(capsys: pytest.CaptureFixture[str]) -> None:
    show([("日本", "one\ntwo"), ("a\x1b[31m\u202e", 2)], ("name", "what"))
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
