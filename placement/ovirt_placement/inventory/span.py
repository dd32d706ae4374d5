"""When something was read: the only way to know which of two readings is newer."""

from __future__ import annotations

from typing import NamedTuple

_NEVER = float("-inf")


class Span(NamedTuple):
    """What was read was so at some moment from `began` to `ended`; seconds of one clock."""

    began: float
    ended: float


NEVER = Span(_NEVER, _NEVER)
