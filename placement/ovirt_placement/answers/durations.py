"""How long something is thought to take, in words that are no more exact than the estimate."""

from __future__ import annotations

_A_MINUTE = 60
_AN_HOUR = 60 * _A_MINUTE


def duration_text(seconds: float) -> str:
    """Seconds, minutes or hours."""
    if seconds < _A_MINUTE:
        return f"{max(1, round(seconds))} s"
    if seconds < _AN_HOUR:
        return f"{round(seconds / _A_MINUTE)} min"
    return f"{seconds / _AN_HOUR:.1f} h"
