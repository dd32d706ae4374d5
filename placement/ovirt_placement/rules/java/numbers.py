"""Java's arithmetic, where the engine's answer hangs on it: single precision, rounding, 32 bits."""

from __future__ import annotations

import math
import struct

_SINGLE = struct.Struct("f")
_LEAST_INT, _MOST_INT = -(2**31), 2**31 - 1


def single(number: float) -> float:
    """The nearest `float` of Java."""
    try:
        (rounded,) = _SINGLE.unpack(_SINGLE.pack(number))
    except OverflowError:
        return math.copysign(math.inf, number)
    return float(rounded)


def rounded(number: float) -> int:
    """`Math.round` of a `float`: halves go up, what is no number is 0, and an `int` ends where it ends."""
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return _MOST_INT if number > 0 else _LEAST_INT
    below = math.floor(number)
    return min(max(below + (number - below >= 0.5), _LEAST_INT), _MOST_INT)


def wrapped(number: int) -> int:
    """What is left of a sum or product in an `int`."""
    return (number - _LEAST_INT) % 2**32 + _LEAST_INT


def quotient(dividend: float, divisor: float) -> float:
    """A division of numbers with a point, which nothing forbids in Java."""
    if divisor == 0:
        return math.copysign(math.inf, dividend) if dividend else math.nan
    return dividend / divisor
