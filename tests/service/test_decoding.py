"""A mistake in a file is named by its path, with the nearest right name or all that there are."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal

import msgspec
import pytest

from ovirt_service.decoding import complaint


class Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class Inner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    colour: Colour = Colour.RED
    size: Literal["small", "large"] = "small"


class Empty(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Outer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    count: int
    inner: Inner = Inner()
    many: tuple[Inner, ...] = ()
    named: dict[str, Inner] = {}
    empty: Empty = Empty()


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "count: is missing"),
        ({"count": "x"}, "count: expected a whole number, not text"),
        ({"count": 1, "inner": 2}, "inner: expected an object, not a whole number"),
        ({"count": 1, "iner": {}}, 'iner: unknown key; did you mean "inner"?'),
        ({"count": 1, "zzz": {}}, "zzz: unknown key; known are count, inner, many, named, empty"),
        ({"count": 1, "empty": {"zzz": 1}}, "empty.zzz: unknown key"),
        ({"count": 1, "many": [{}, {"sise": 1}]}, 'many[1].sise: unknown key; did you mean "size"?'),
        ({"count": 1, "named": {"x": {"sise": 1}}}, 'named[...].sise: unknown key; did you mean "size"?'),
        (
            {"count": 1, "inner": {"colour": "gren"}},
            'inner.colour: cannot be "gren"; one of red, green; did you mean "green"?',
        ),
        (
            {"count": 1, "many": [{"size": "huge"}]},
            'many[0].size: cannot be "huge"; one of small, large',
        ),
    ],
)
def test_mistakes_are_named(document: dict[str, Any], said: str) -> None:
    with pytest.raises(msgspec.ValidationError) as refusal:
        msgspec.convert(document, Outer)
    assert complaint(refusal.value, Outer) == said
