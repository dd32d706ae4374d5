"""Whether a value fits a field, and how it is compared with what a record holds there.

As SQL does: what is empty is equal to nothing and unlike everything. Records hold texts, numbers, words (in
lower case), flags and times; None is what the engine's database has as NULL.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from ovirt_simulator.http.operating_systems import OPERATING_SYSTEMS
from ovirt_simulator.http.search import days
from ovirt_simulator.http.search.errors import SearchFailure, invalid
from ovirt_simulator.http.search.fields import Field, Kind
from ovirt_simulator.http.search.ids import canonical
from ovirt_simulator.http.search.patterns import compiled, escaped, like

Test = Callable[[Any], bool]

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
#: Days; days and a time of day, with any letter between as far as these go; a time of day.
_DAYS = re.compile("[0-9]+")
_DAYS_AND_TIME = re.compile(r"[0-9]+.[0-9]{2}:[0-9]{2}(:[0-9]{2}(.[0-9]{2})?)?")
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(.[0-9]{2})?)?")
_UNITS = (86400, 3600, 60, 1)
_EMPTY = ("", "null")
_NUMBERS = (Kind.WORD, Kind.INTEGER, Kind.DECIMAL)
_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,9})?", re.IGNORECASE)
#: What the database takes for a flag; also any shorter form that is no start of another.
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_BOOLEANS = dict.fromkeys(_TRUE, True) | dict.fromkeys(_FALSE, False)
_BIGGEST = 2**63
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
    return _DECIMAL.fullmatch(value) is not None


def _span_seconds(value: str) -> int | None:
    """Read days, or days, hours, minutes and seconds; with a sign anywhere below 0, which is 0."""
    cleaned = value.replace("-", "").strip()
    if not any(known.fullmatch(cleaned) for known in (_DAYS, _DAYS_AND_TIME, _TIME)):
        return None
    parts = re.split("[:.]", cleaned)
    if not all(_is_integer(part) for part in parts):
        return None
    numbers = [int(part) for part in parts]
    if not _DAYS.fullmatch(cleaned) and not _DAYS_AND_TIME.fullmatch(cleaned):
        numbers.insert(0, 0)
    seconds = sum(number * unit for number, unit in zip(numbers, _UNITS, strict=False))
    return 0 if "-" in value else seconds


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
        return text(relation, value, case_sensitive)
    if field.kind is Kind.DAY:
        return _day_test(relation, _day(value, now))
    if value.lower() in _EMPTY and relation in ("=", "!=") and field.kind not in _NUMBERS:
        return lambda held: (held is None) == (relation == "=")
    return _compared(relation, _converted(field, value, now), _held(field))


def free_text(relation: str, value: str, case_sensitive: bool) -> Test:
    """Make the test of each text that is looked into for words; an empty text is looked for as it is."""
    pattern = like(value, relation)
    return _text_test(relation, f"%{pattern}%" if value else "", case_sensitive, null=False)


def text(relation: str, value: str, case_sensitive: bool, *, anywhere: bool = False) -> Test:
    """Make the test of a text; `anywhere` in it or, as a rule, for all of it."""
    pattern = like(value, relation)
    return _text_test(relation, f"%{pattern}%" if anywhere else pattern, case_sensitive)


def one_of_several(relation: str, value: str, case_sensitive: bool) -> Test:
    """Make the test of names in a list, of which one must be the value.

    The engine compares the wrong way round: the names are the patterns, and the value has no wildcards. With
    `!=` none of them may be it; without regard to case, the engine lets one other name suffice.
    """
    wanted = escaped(value).replace("*", "%")

    def judge(held: Any) -> bool:
        if held is None:
            return False
        alike = [compiled(name, case_sensitive).fullmatch(wanted) is not None for name in held.split(",")]
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
    if field.kind in (Kind.INTEGER, Kind.DECIMAL):
        return _number(field.kind, value)
    return _converted_by_the_database(field, value, now)


def _number(kind: Kind, value: str) -> int | Decimal:
    """Read a number, which the engine lets have the digits of any script, and its database does not."""
    if not value.isascii():
        raise invalid("integer" if kind is Kind.INTEGER else "numeric", value)
    return int(value) if kind is Kind.INTEGER else Decimal(value)


def _bigint(value: str) -> int:
    if not value.isascii() or not _INTEGER.fullmatch(value.strip()):
        raise invalid("bigint", value)
    if not -_BIGGEST <= int(value) < _BIGGEST:
        raise SearchFailure(f'ERROR: value "{value}" is out of range for type bigint')
    return int(value)


def _boolean(value: str) -> bool:
    meant = {known for word, known in _BOOLEANS.items() if value and word.startswith(value.strip().lower())}
    if len(meant) != 1:
        raise invalid("boolean", value)
    return meant.pop()


def _day(value: str, now: datetime) -> datetime:
    found = days.day(value, now)
    if found in (days.TOO_EARLY, days.TOO_LATE):
        raise SearchFailure(f'ERROR: date/time field value out of range: "{value}"')
    return found


def _converted_by_the_database(field: Field, value: str, now: datetime) -> Any:
    """Convert what the engine hands on unchecked, and fail as its database does."""
    if field.kind is Kind.DATE:
        found = days.moment(value, now)
        if found is None:
            raise SearchFailure("", 500)
        return found
    if field.kind is Kind.BIGINT:
        return _bigint(value)
    if field.kind is Kind.BOOLEAN:
        return _boolean(value)
    if field.kind is Kind.UUID:
        return canonical(value)
    return value


def _day_test(relation: str, moment: datetime) -> Test:
    if relation == "=":
        end = moment + timedelta(days=1)
        return lambda held: held is not None and moment <= held <= end
    return _compared(relation, moment, lambda held: held)


def _text_test(relation: str, pattern: str, case_sensitive: bool, *, null: bool = True) -> Test:
    unlike = relation == "!="
    matches = compiled(pattern, case_sensitive).fullmatch

    def judge(held: Any) -> bool:
        if held is None:
            return unlike and null
        return (matches(held) is None) == unlike

    return judge
