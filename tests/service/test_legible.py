"""What is shown of a text: what can be seen as it is, all else by its code."""

from __future__ import annotations

import io
import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from ovirt_service.legible import escaped, legible, unbroken

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
