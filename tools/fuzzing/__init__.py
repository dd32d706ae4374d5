"""Fuzzers: each makes inputs for one reader by chance, and checks what may never happen to it.

A fuzzer is a module of this package with a function `attempt(chance)`: it makes one input, has it read, and
raises for what may not be. `python -m tools.fuzzing NAME --inputs N` runs one for long, and the suite each
for a moment.
"""

from __future__ import annotations

import importlib
import random
from collections.abc import Callable

#: The fuzzers, by the names of their modules.
FUZZERS = ("xmlrpc", "engine", "inventory", "state_file", "key_file")

#: Makes one input and has it read.
Attempt = Callable[[random.Random], None]


def fuzzer(name: str) -> Attempt:
    attempt: Attempt = importlib.import_module(f"{__name__}.{name}").attempt
    return attempt
