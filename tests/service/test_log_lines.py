"""The log: whatever a message holds, it is one line, and steers no terminal."""

from __future__ import annotations

import io
import logging

from hypothesis import given
from hypothesis import strategies as st

from ovirt_service.legible import LineFormatter, one_line


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
