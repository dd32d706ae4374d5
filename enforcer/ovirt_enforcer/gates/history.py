"""What gates remember: the migrations that were asked of the engine, counted by VM and by the hour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ovirt_placement.store.intents import Intent

HOUR_SECONDS: Final = 3600.0
#: The error of an intent that came to nothing without the engine's doing: it counts for no gate.
NEVER_ASKED: Final = "never reached the engine"


def asked(intents: Iterable[Intent]) -> tuple[Intent, ...]:
    """Those that the engine was asked for."""
    return tuple(intent for intent in intents if intent.error != NEVER_ASKED)


def by_vm(intents: Iterable[Intent]) -> Mapping[str, Sequence[Intent]]:
    """The intents of each VM, in the order given."""
    found = defaultdict(list)
    for intent in intents:
        found[intent.vm].append(intent)
    return found


def within_an_hour(intents: Iterable[Intent]) -> int:
    """How many there were in the last hour."""
    return sum(intent.age_seconds < HOUR_SECONDS for intent in intents)
