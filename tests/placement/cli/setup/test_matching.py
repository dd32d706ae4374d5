"""Parameters are matched by expressions of others, and in bounded time."""

from __future__ import annotations

import re

import pytest

from ovirt_placement.answers.setup.desired import check_value, matches
from ovirt_service.errors import UserError

#: Python tries each way to share out the letters before it says no.
ENDLESS = "(a+)+b"


@pytest.mark.parametrize(
    ("regex", "value", "fits"),
    [
        ("[0-9]+", "80", True),
        ("[0-9]+", "80 ", False),
        ("[0-9]*", "1" * 400, True),
        ("[a-zé]+", "é" * 40, True),
        ("[0-9]*", "x" * 400, False),
        (ENDLESS, "a" * 10 + "b", True),
        pytest.param(ENDLESS, "a" * 60, None, marks=pytest.mark.system),
    ],
)
def test_values_fit_or_not_or_nobody_knows(regex: str, value: str, fits: bool | None) -> None:
    assert matches(regex, value) is fits


@pytest.mark.system
def test_what_takes_too_long_is_for_the_engine_to_judge() -> None:
    check_value("limit", "a" * 60, ENDLESS, "--property")
    with pytest.raises(UserError, match="does not match"):
        check_value("limit", "x" * 60, "[0-9]*", "--property")


def test_an_expression_of_another_language_is_none() -> None:
    with pytest.raises(re.error):
        matches(r"\p{Alpha}", "a")
