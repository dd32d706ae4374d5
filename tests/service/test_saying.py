"""How long daemons wait, how often they say a thing, and what names a thing."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_service.daemon import BackOff
from ovirt_service.files import digest, digest_name
from ovirt_service.log import Complaint, Few, Said
from tests.clock import Clock


@given(st.floats(0.01, 10), st.floats(0.01, 1000), st.integers(1, 30))
def test_each_pause_is_twice_the_last_up_to_the_longest(first: float, longest: float, failures: int) -> None:
    back_off = BackOff(first, longest)
    expected = first
    for _ in range(failures - 1):
        expected *= 2
    assert back_off.pause_after(failures) == min(expected, longest)


def test_without_a_failure_there_is_no_pause() -> None:
    assert BackOff(1.0, 10.0).pause_after(0) == 0.0


def test_what_failed_for_days_is_still_tried() -> None:
    assert BackOff(1.0, 10.0).pause_after(1_000_000) == 10.0


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


def test_few_of_a_kind_are_said_in_a_while_and_the_others_counted() -> None:
    now = [0.0]
    few = Few(3, 10.0, lambda: now[0])
    assert [few.left_out("a") for _ in range(8)] == [0, 0, 0, None, None, None, None, None]
    assert few.left_out("b") == 0
    now[0] = 10.0
    assert [few.left_out("a") for _ in range(4)] == [5, 0, 0, None]
    for number in range(20_000):
        few.left_out(number)
    assert len(few._said) <= 10_000


def test_a_digest_is_the_beginning_of_a_sha_256() -> None:
    # FIPS 180-2, appendix B.1.
    assert digest("abc", 8).hex() == digest_name("abc", 8) == "ba7816bf8f01cfea"
    assert digest("\ud800", 4) != digest("\udfff", 4)
