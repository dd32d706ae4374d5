"""The order of ids as the engine compares them, and their hash: ids are UUIDs there."""

from __future__ import annotations

import re
from functools import lru_cache
from uuid import UUID

_HALF = 64
_SIGN = 1 << (_HALF - 1)
_WORD = 0xFFFFFFFF


#: Where an id stands among others.
Place = tuple[int, int, int, tuple[tuple[int, str], ...]]


@lru_cache(maxsize=65536)
def in_order(name: str) -> Place:
    """Sort ids by this as `Guid.compareTo` does: by their halves, each taken as a signed number.

    What is no id of an engine comes after all that are, as people count: vm2 before vm10.
    """
    try:
        upper, lower = _halves(name)
    except ValueError:
        parts = re.findall(r"\d+|\D+", name)
        return 1, 0, 0, tuple((int(part), "") if part.isdecimal() else (-1, part) for part in parts)
    return 0, _signed(upper), _signed(lower), ()


@lru_cache(maxsize=65536)
def spread_hash(name: str) -> int | None:
    """The hash of an id as a `HashMap` spreads it; None for what is no id of an engine.

    Source: java.util.UUID.hashCode and java.util.HashMap.hash.
    """
    try:
        upper, lower = _halves(name)
    except ValueError:
        return None
    folded = upper ^ lower
    code = (folded >> 32) ^ (folded & _WORD)
    return code ^ (code >> 16)


def _halves(name: str) -> tuple[int, int]:
    return divmod(UUID(name).int, 1 << _HALF)


def _signed(half: int) -> int:
    return half - (1 << _HALF) if half & _SIGN else half
