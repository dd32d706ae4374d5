"""What every record is made of: immutable, typed, decoded strictly."""

from __future__ import annotations

import msgspec


class Struct(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False
):
    """An immutable record, decoded strictly.

    Such records form no cycles; with tens of thousands of them, the garbage collector's looking for some
    would be what an answer to the engine takes longest for.
    """
