"""Statistics as the engine shows them: decimals with two digits that count, ids that follow from the name."""

from __future__ import annotations

import hashlib
import uuid
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache

from ovirt_simulator.core.entities import Statistic
from ovirt_simulator.http.links import Links
from ovirt_simulator.http.markup import element, lines, text

_TWO_DIGITS = Context(prec=2, rounding=ROUND_HALF_UP)


def statistic(record: Statistic, links: Links, *, owner: str) -> str:
    """Render a statistic; `owner` is the reference to the host or VM that it is of."""
    return links.entity(
        "statistic",
        statistic_id(record.name),
        _meaning(record.name, record.description, record.kind, record.type, record.unit),
        element("values", *(element("value", _datum(value)) for value in record.values)),
        owner,
    )


@cache
def _meaning(name: str, description: str, kind: str, type_name: str, unit: str) -> str:
    return lines(
        text("name", name),
        text("description", description),
        text("kind", kind),
        text("type", type_name),
        text("unit", unit),
    )


@cache
def statistic_id(name: str) -> str:
    """Give Java's `UUID.nameUUIDFromBytes(name)`: the same for every host and VM."""
    digest = hashlib.md5(name.encode(), usedforsecurity=False).digest()
    return str(uuid.UUID(bytes=digest, version=3))


def _datum(value: int | float | str) -> str:
    if isinstance(value, str):
        return text("detail", value)
    if isinstance(value, float):
        return text("datum", two_digits(value))
    return text("datum", value)


def two_digits(value: float) -> str:
    """Round as Java's `new BigDecimal(value, new MathContext(2))` does and writes it: 99.6 is 1.0E+2."""
    return str(_TWO_DIGITS.create_decimal(Decimal(value)))
