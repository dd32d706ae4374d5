"""A message is one line; the same is said once, until it changes or was over; others are counted."""

import io
import json
import logging
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_service.log import AuditLog, Complaint, LineFormatter
from ovirt_service.repetition import Few, Said
from ovirt_service.text import one_line
from tests.clock import Clock

QUIET_SECONDS = 600.0


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), st.floats(0, 400))))
def test_each_subject_is_reported_once_in_the_quiet_time(events: list[tuple[str, str, float]]) -> None:
    clock = Clock(1000.0)
    said = Said(QUIET_SECONDS, clock)
    last: dict[tuple[str, str], float] = {}
    for unit, cause, pause in events:
        clock.now += pause
        due = clock.now - last.get((unit, cause), -1e9) >= QUIET_SECONDS
        assert said.is_news((unit, cause)) == due
        if due:
            last[unit, cause] = clock.now


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["", "x", "y", None]))))
def test_other_words_are_news_and_so_is_what_was_over(events: list[tuple[str, str | None]]) -> None:
    said = Said()
    last: dict[str, str] = {}
    for subject, words in events:
        if words is None:
            assert said.is_over(subject) == (subject in last)
            last.pop(subject, None)
        else:
            assert said.is_news(subject, words) == (last.get(subject) != words)
            last[subject] = words


def test_of_very_many_subjects_the_oldest_are_forgotten() -> None:
    said = Said(QUIET_SECONDS, lambda: 0.0)
    for number in range(10_001):
        assert said.is_news(number)
    assert not said.is_news(1)
    assert said.is_news(0)


def test_what_may_be_said_again_is_not_kept() -> None:
    clock = Clock(1000.0)
    said = Said(QUIET_SECONDS, clock)
    for number in range(100):
        said.is_news(number)
    clock.now += QUIET_SECONDS
    said.is_news("other")
    assert not any(said.is_over(number) for number in range(100))


def test_a_complaint_is_made_once_whatever_the_reason_and_taken_back_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    complaint = Complaint(logging.getLogger("part"), "keys cannot be read", "keys are read again")
    for error in ("", "locked", "locked", "away", "", "", "locked"):
        complaint.say(error)
    assert [record.getMessage() for record in caplog.records] == [
        "keys cannot be read: locked",
        "keys are read again",
        "keys cannot be read: locked",
    ]


def test_an_audit_log_that_cannot_be_written_is_a_complaint_and_what_is_logged_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log = AuditLog("tests.audit", "[tests] audit_log", in_log=False)
    log.open(str(folder / "file"))
    log.write({"at": 1})
    folder.rename(tmp_path / "rotated")
    for _ in range(2):
        log.write({"at": 2})
    folder.mkdir()
    log.write({"at": 3})
    assert [json.loads(line)["at"] for line in (folder / "file").read_text().splitlines()] == [3]
    log.open("/dev/full")
    for _ in range(2):
        log.write({"at": 4})
    with suppress(OSError):
        log.open("")
    wrong, over, full = caplog.messages
    assert wrong.startswith(f"[tests] audit_log: cannot be written: {folder}/file: No such file or directory")
    assert over == "[tests] audit_log: is written again"
    assert "No space left on device" in full
    assert capsys.readouterr().err == ""


def test_few_of_a_kind_are_said_in_a_while_and_the_others_counted() -> None:
    clock = Clock()
    few = Few(3, 10.0, clock)
    assert [few.left_out("a") for _ in range(8)] == [0, 0, 0, None, None, None, None, None]
    assert few.left_out("b") == 0
    clock.now = 10.0
    assert [few.left_out("a") for _ in range(4)] == [5, 0, 0, None]
    for number in range(20_000):
        few.left_out(number)
    assert len(few._said) <= 10_000


def logged(message: str, error: BaseException | None = None) -> list[str]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LineFormatter("%(levelname)s %(message)s"))
    raised = error and (type(error), error, error.__traceback__)
    fields = {"levelname": "INFO", "msg": "%s", "args": (message,), "exc_info": raised}
    handler.handle(logging.makeLogRecord(fields))
    return stream.getvalue().split("\n")[:-1]


@given(st.text())
def test_a_message_is_one_line_of_characters_that_are_to_be_seen(text: str) -> None:
    (line,) = logged(text)
    assert line.isprintable()


def test_a_forged_line_and_a_terminals_codes_are_reported_as_what_they_are() -> None:
    forged = "no VM x\nERROR all hosts\x1b[31m refused\u202e"
    assert logged(forged) == [r"INFO no VM x\nERROR all hosts\x1b[31m refused\u202e"]
    assert one_line("Zürich 東京") == "Zürich 東京"
    try:
        raise ValueError("one\nERROR two\r\x1b[2J")
    except ValueError as error:
        first, *others = logged("it failed", error)
    assert first == "INFO it failed"
    assert all(line.startswith("    ") and line.isprintable() for line in others)
