"""Tables are aligned by what characters take on a terminal, and nothing in a name can steer one."""

from __future__ import annotations

import pytest

from ovirt_service.tables import escaped, show


def test_wide_characters_are_aligned_and_controls_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    show([("日本", "one\ntwo"), ("a\x1b[31m\u202e", 2)], ("name", "what"))
    assert capsys.readouterr().out.splitlines() == [
        "name             what",
        "---------------  ----",
        "日本             one",
        "                 two",
        "a\\x1b[31m\\u202e  2",
    ]


def test_what_may_be_seen_stays() -> None:
    assert escaped("d\u00fcrfen wir?\nja") == "d\u00fcrfen wir?\nja"
    assert escaped("\t\x7f\udcff") == "\\t\\x7f\\udcff"
