"""Numbers as they are written: 0.1 is a tenth, so that a score on a threshold is on it."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

#: A number as somebody wrote it, or as it was computed.
Written: TypeAlias = float | str | Fraction

#: A numerator and a positive denominator, reduced or not.
Ratio: TypeAlias = tuple[int, int]

#: Bounded, so that no text can make the arithmetic of a placement slow, or a sum too large for a float.
_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,2})?", re.ASCII)

ZERO = Fraction(0)


def number(written: Written | None) -> Fraction | None:
    """The exact decimal that was written; None for words, nothing, NaN and the infinite."""
    if written is None or isinstance(written, Fraction):
        return written
    return _decimal(written)


@lru_cache(maxsize=4096)
def ratio(written: Written) -> Ratio:
    """The same as a pair, which hashes and compares quickly; what is no number counts as 0."""
    return (number(written) or ZERO).as_integer_ratio()


@lru_cache(maxsize=4096)
def _decimal(written: float | str) -> Fraction | None:
    text = written.strip() if isinstance(written, str) else repr(written)
    return Fraction(text) if _NUMBER.fullmatch(text) else None
