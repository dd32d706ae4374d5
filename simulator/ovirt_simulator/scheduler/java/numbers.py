"""Numbers as Java rounds and divides them."""

from __future__ import annotations

import math
import struct


def float32(number: float) -> float:
    """Round to the 32 bits of Java's float."""
    (rounded,) = struct.unpack("f", struct.pack("f", number))
    return float(rounded)


def divided(dividend: float, divisor: float) -> float:
    """Divide as Java's floating-point numbers do, by zero too."""
    if divisor:
        return dividend / divisor
    return math.copysign(math.inf, dividend) if dividend else math.nan


def math_round(number: float) -> int:
    """Round to the nearest int, halves up; what is no number gives 0, and the ends of an int hold."""
    if math.isnan(number):
        return 0
    if math.isinf(number):
        return 2**31 - 1 if number > 0 else -(2**31)
    whole = math.floor(number)
    return whole if number - whole < 0.5 else whole + 1


def as_int(number: int) -> int:
    """Give what is left of a sum in the 32 bits of an int."""
    return (number + 2**31) % 2**32 - 2**31
