"""The order of ids as the engine compares them, and their hash: ids are UUIDs there."""

from __future__ import annotations

from functools import lru_cache
from uuid import UUID

_HALF = 64
_SIGN = 1 << (_HALF - 1)
_WORD = 0xFFFFFFFF


@lru_cache(maxsize=65536)
def in_order(name: str) -> tuple[int, int, int, str]:
    """Sort ids by this as `Guid.compareTo` does: by their halves, each taken as a signed number.

    What is no id of an engine comes after all that are, in the order of its text.
    """
    try:
        upper, lower = _halves(name)
    except ValueError:
        return 1, 0, 0, name
    return 0, _signed(upper), _signed(lower), ""


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
