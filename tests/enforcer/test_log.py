"""What is looked at again and again is put off longer with each failure, and talks no more than it must."""

import ast
import logging
from collections.abc import Iterator
from string import Formatter

import pytest

from ovirt_enforcer.log import LogText, RetryState
from ovirt_service.errors import UserError
from tests.paths import CHECKOUT


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_it_is_put_off_longer_with_each_failure_up_to_the_interval() -> None:
    retry_state = RetryState("cluster one")
    dues = []
    for now in (0.0, 100.0, 200.0, 300.0):
        retry_state.fail(UserError("away"), now, longest_pause=5.0)
        dues.append(retry_state.due - now)
    assert dues == [1.0, 2.0, 4.0, 5.0]
    assert retry_state.failing
    retry_state.recover()
    assert not retry_state.failing
    retry_state.fail(UserError("away"), 400.0, longest_pause=5.0)
    assert retry_state.due == 401.0


def test_a_failure_is_reported_until_it_changes_and_its_end_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    retry_state = RetryState("cluster one")
    for error in (UserError("away"), UserError("away"), ValueError("odd"), ValueError("odd")):
        retry_state.fail(error, 0.0, longest_pause=5.0)
    retry_state.recover()
    retry_state.recover()
    assert messages(caplog) == [
        "cluster one: away",
        "cluster one: ValueError: odd",
        "cluster one: works again",
    ]
    assert [bool(record.exc_info) for record in caplog.records] == [False, True, False]


def test_plans_and_states_are_each_reported_when_they_change(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    retry_state = RetryState("cluster one")
    for _ in range(2):
        retry_state.announce(["a plan", "  1. a step"])
        retry_state.say(LogText.RUN_WAITS, run="r", why="it is paused")
    retry_state.say(LogText.RUN_WAITS, run="r", why="VMs go back")
    retry_state.say(LogText.RUN_WAITS, run="r", why="it is paused")
    waits = [f"maintenance run r: {why}" for why in ("it is paused", "VMs go back", "it is paused")]
    assert messages(caplog) == ["a plan", "  1. a step", *waits]


def test_a_failure_that_lasts_is_reported_again_at_growing_intervals(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    retry_state = RetryState("cluster one")
    for now in range(0, 600, 2):
        retry_state.fail(UserError(f"the last snapshot is {now} s old"), float(now), longest_pause=2.0)
    retry_state.recover()
    assert messages(caplog) == [
        *(f"cluster one: the last snapshot is {now} s old" for now in (0, 60, 180, 420)),
        "cluster one: works again",
    ]


def reports() -> Iterator[tuple[LogText, set[str] | None]]:
    """Each text that the enforcer logs, with the facts that it is given; None where these are not named."""
    for file in (CHECKOUT / "enforcer" / "ovirt_enforcer").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("report", ".say")):
                facts = {keyword.arg for keyword in node.keywords}
                for given in node.args[:1]:
                    if isinstance(given, ast.Attribute) and ast.unparse(given.value) == "LogText":
                        known = None if None in facts else {fact for fact in facts if fact}
                        yield LogText[given.attr], known


def test_each_text_is_given_what_it_speaks_of() -> None:
    for text, facts in reports():
        wanted = {field for _, field, _, _ in Formatter().parse(text.words) if field}
        assert facts is None or wanted <= facts, text
