"""Whether a value fits a field, and how it is compared with what a record holds there.

As SQL does: what is empty is equal to nothing and unlike everything. Records hold texts, numbers, words (in
lower case), flags and times; None is what the engine's database has as NULL.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from ovirt_simulator.http.operating_systems import OPERATING_SYSTEMS
from ovirt_simulator.http.search import days
from ovirt_simulator.http.search.errors import SearchFailure, invalid
from ovirt_simulator.http.search.fields import Field, Kind

Test = Callable[[Any], bool]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
_SPAN = re.compile(
    r"(?P<whole>\d+)|(?:(?P<days>\d+).)?(?P<hours>\d\d):(?P<minutes>\d\d)(?::(?P<seconds>\d\d)(?:.\d\d)?)?"
)
_EMPTY = ("", "null")
_NUMBERS = (Kind.WORD, Kind.INTEGER, Kind.DECIMAL)
_INTEGER = re.compile(r"[+-]?\d+")
_BOOLEANS = {"true": True, "t": True, "yes": True, "y": True, "on": True, "1": True} | {
    "false": False,
    "f": False,
    "no": False,
    "n": False,
    "off": False,
    "0": False,
}
#: Only whether a text is a day matters then, and a year in two digits is one at any time.
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)


def fits(field: Field, value: str) -> bool:
    """Say whether the engine lets a field be compared with a value."""
    if field.kind is Kind.WORD:
        known = value.strip() if field.words is OPERATING_SYSTEMS else value.lower()
        return known in field.words
    check = _CHECKS.get(field.kind)
    return check is None or check(value)


def _is_integer(value: str) -> bool:
    return _INTEGER.fullmatch(value) is not None and -(2**31) <= int(value) < 2**31


def _is_decimal(value: str) -> bool:
    try:
        return Decimal(value).is_finite() and "_" not in value
    except InvalidOperation:
        return False


def _span_seconds(value: str) -> int | None:
    """Read days, or days, hours, minutes and seconds; a sign anywhere makes them negative."""
    found = _SPAN.fullmatch(value.replace("-", "").strip())
    if found is None:
        return None
    parts = {name: int(digits) for name, digits in found.groupdict("0").items()}
    span = timedelta(
        days=parts["whole"] + parts["days"],
        hours=parts["hours"],
        minutes=parts["minutes"],
        seconds=parts["seconds"],
    )
    return max(0, int(span.total_seconds()) * (-1 if "-" in value else 1))


def _is_day(value: str) -> bool:
    return days.is_day(value, _ANY_TIME)


_CHECKS: dict[Kind, Callable[[str], bool]] = {
    Kind.INTEGER: _is_integer,
    Kind.DECIMAL: _is_decimal,
    Kind.SPAN: lambda value: _span_seconds(value) is not None,
    Kind.DAY: _is_day,
    Kind.DATE: _is_day,
}


def test(field: Field, relation: str, value: str, *, case_sensitive: bool, now: datetime) -> Test:
    """Make the test for what a record holds in a field.

    Raises `SearchFailure` for what only the engine's database refuses.
    """
    if field.kind is Kind.TEXT:
        return _text_test(relation, value, case_sensitive)
    if field.kind is Kind.DAY:
        return _day_test(relation, days.day(value, now))
    if value.lower() in _EMPTY and relation in ("=", "!=") and field.kind not in _NUMBERS:
        return lambda held: (held is None) == (relation == "=")
    return _compared(relation, _converted(field, value, now), _held(field))


def free_text(relation: str, value: str, case_sensitive: bool) -> Test:
    """Make the test of each text that is looked into for words; an empty text is looked for as it is."""
    return _text_test(relation, f"*{value}*" if value else "", case_sensitive, null=False)


def one_of_several(relation: str, value: str, case_sensitive: bool) -> Test:
    """Make the test of names in a list, of which one must be the value; `*` is no wildcard there.

    With `!=` none of them may be it; without regard to case, the engine lets one other name suffice.
    """

    def judge(held: Any) -> bool:
        if held is None:
            return False
        names = held.split(",") if case_sensitive else held.lower().split(",")
        alike = [name == (value if case_sensitive else value.lower()) for name in names]
        if relation == "=":
            return any(alike)
        return not any(alike) if case_sensitive else not all(alike)

    return judge


def _compared(relation: str, wanted: Any, held_as: Callable[[Any], Any]) -> Test:
    compare = _COMPARE[relation]
    unlike = relation == "!="
    return lambda held: unlike if held is None else compare(held_as(held), wanted)


def _held(field: Field) -> Callable[[Any], Any]:
    """Give what turns a record's value into what is compared."""
    if field.kind is Kind.WORD:
        numbers = field.words
        return lambda held: numbers.get(str(held).lower())
    if field.kind is Kind.UUID:
        return lambda held: str(held).lower()
    return lambda held: held


def _converted(field: Field, value: str, now: datetime) -> Any:
    if field.kind is Kind.WORD:
        return field.words[value.strip() if field.words is OPERATING_SYSTEMS else value.lower()]
    if field.kind is Kind.SPAN:
        return _span_seconds(value)
    if field.kind is Kind.INTEGER:
        return int(value)
    if field.kind is Kind.DECIMAL:
        return Decimal(value)
    return _converted_by_the_database(field, value, now)


def _converted_by_the_database(field: Field, value: str, now: datetime) -> Any:
    """Convert what the engine hands on unchecked, and fail as its database does."""
    if field.kind is Kind.DATE:
        found = days.date(value, now)
        if found is None:
            raise SearchFailure("", 500)
        return found
    if field.kind is Kind.BIGINT:
        if not _INTEGER.fullmatch(value):
            raise invalid("bigint", value)
        return int(value)
    if field.kind is Kind.BOOLEAN:
        if value.lower() not in _BOOLEANS:
            raise invalid("boolean", value)
        return _BOOLEANS[value.lower()]
    if field.kind is Kind.UUID:
        if "*" in value:
            raise invalid("uuid", value)
        return value.lower()
    return value


def _day_test(relation: str, moment: datetime) -> Test:
    if relation == "=":
        end = moment + timedelta(days=1)
        return lambda held: held is not None and moment <= held <= end
    return _compared(relation, moment, lambda held: held)


def _text_test(relation: str, value: str, case_sensitive: bool, *, null: bool = True) -> Test:
    """Match with `*`. In an `!=`, `_` stands for any letter: the engine forgets to escape it there."""
    unlike = relation == "!="
    matches = _pattern(value, case_sensitive, underscore=unlike).fullmatch

    def judge(held: Any) -> bool:
        if held is None:
            return unlike and null
        return (matches(held) is None) == unlike

    return judge


def _pattern(value: str, case_sensitive: bool, *, underscore: bool) -> re.Pattern[str]:
    letters = {"*": ".*", "_": "." if underscore else "_"}
    pattern = "".join(letters.get(letter, re.escape(letter)) for letter in value)
    return re.compile(pattern, re.DOTALL if case_sensitive else re.DOTALL | re.IGNORECASE)
