"""Fuzzers: each makes inputs for one reader by chance, and checks what may never happen to it.

A fuzzer is a module of this package with a function `attempt(chance)`: it makes one input, has it read, and
raises for what may not be. `python -m tools.fuzzing NAME --inputs N` runs one for long, and the suite each
for a moment.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable, Sequence

#: The fuzzers, by the names of their modules.
FUZZERS = ("xmlrpc", "engine", "inventory", "state_file", "key_file")

#: Makes one input and has it read.
Attempt = Callable[[random.Random], None]


def fuzzer(name: str) -> Attempt:
    attempt: Attempt = importlib.import_module(f"{__name__}.{name}").attempt
    return attempt


def damaged(data: bytes, tokens: Sequence[bytes], chance: random.Random, most: int = 4) -> bytes:
    """The data with one to `most` pieces cut, repeated, or replaced by bytes or by one of the tokens."""
    found = bytearray(data)
    for _ in range(chance.randint(1, most)):
        start = chance.randrange(len(found) + 1)
        end = min(len(found), start + chance.choice([0, 0, 1, 1, 5, 40]))
        pieces = (chance.choice(tokens), chance.randbytes(chance.randint(0, 6)), bytes(found[start:end]) * 3)
        found[start:end] = chance.choice(pieces)
    return bytes(found)
