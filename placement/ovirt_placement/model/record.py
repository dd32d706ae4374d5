"""What rules answer with is made of: immutable records that can be written as JSON."""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """An immutable record; what has its default value is left out of JSON."""
