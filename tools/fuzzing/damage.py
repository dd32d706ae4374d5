"""Damages well-formed inputs in a few places, as chance will have it."""

from __future__ import annotations

import random
from collections.abc import Sequence


def damaged(data: bytes, tokens: Sequence[bytes], chance: random.Random, most: int = 4) -> bytes:
    """The data with one to `most` pieces cut, repeated, or replaced by bytes or by one of the tokens."""
    found = bytearray(data)
    for _ in range(chance.randint(1, most)):
        start = chance.randrange(len(found) + 1)
        end = min(len(found), start + chance.choice([0, 0, 1, 1, 5, 40]))
        pieces = (chance.choice(tokens), chance.randbytes(chance.randint(0, 6)), bytes(found[start:end]) * 3)
        found[start:end] = chance.choice(pieces)
    return bytes(found)
