"""What others have named is safe to be shown, on a terminal, in a file and in a log."""

from __future__ import annotations

import io
import json
import logging
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from ovirt_service.log import LineFormatter
from ovirt_service.text import escaped, legible, one_line, unbroken

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


def logged(message: str, error: BaseException | None = None) -> list[str]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter("%(levelname)s %(message)s"))
    handler.handle(
        logging.makeLogRecord(
            {
                "levelname": "INFO",
                "msg": "%s",
                "args": (message,),
                "exc_info": error and (type(error), error, error.__traceback__),
            }
        )
    )
    return stream.getvalue().split("\n")[:-1]


@given(st.text())
def test_a_message_is_one_line_of_characters_that_are_to_be_seen(text: str) -> None:
    (line,) = logged(text)
    assert line.isprintable()


def test_a_forged_line_and_a_terminals_codes_are_reported_as_what_they_are() -> None:
    assert logged("no VM x\nERROR all hosts\x1b[31m refused\u202e") == [
        r"INFO no VM x\nERROR all hosts\x1b[31m refused\u202e"
    ]
    assert one_line("Zürich 東京") == "Zürich 東京"


def test_a_traceback_forges_no_line_either() -> None:
    try:
        raise ValueError("one\nERROR two\r\x1b[2J")
    except ValueError as error:
        first, *others = logged("it failed", error)
    assert first == "INFO it failed"
    assert all(line.startswith("    ") and line.isprintable() for line in others)
