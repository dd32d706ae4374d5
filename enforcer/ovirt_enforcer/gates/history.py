"""What gates remember: the migrations that were asked of the engine, by VM, by how they ended, by age."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Final

from ovirt_placement.store.causes import REFUSALS, Cause
from ovirt_placement.store.intents import Intent, IntentState

HOUR_SECONDS: Final = 3600.0


def asked(intents: Iterable[Intent]) -> tuple[Intent, ...]:
    """Those that the engine was asked for, perhaps without a trace: all others count for no gate."""
    return tuple(intent for intent in intents if intent.cause is not Cause.NEVER_ASKED)


def refused(intent: Intent) -> bool:
    """Whether the engine refused it: no migration took place, and another target may do."""
    return intent.state is IntentState.FAILED and intent.cause in REFUSALS


def failed(intent: Intent) -> bool:
    """Whether a migration began and came to nothing."""
    return intent.state is IntentState.FAILED and not refused(intent)


def by_vm(intents: Iterable[Intent]) -> Mapping[str, Sequence[Intent]]:
    """The intents of each VM, in the order given."""
    found = defaultdict(list)
    for intent in intents:
        found[intent.vm].append(intent)
    return found


def begun_within(intents: Iterable[Intent], seconds: float) -> int:
    """How many migrations began so lately; what was refused began none."""
    return sum(begun_ago(intent) < seconds for intent in intents if not refused(intent))


def seconds_until_fewer(intents: Iterable[Intent], seconds: float, limit: int) -> float:
    """How long until fewer began so lately, where they are as many as a limit allows; else infinite."""
    ages = [begun_ago(intent) for intent in intents if not refused(intent) and begun_ago(intent) < seconds]
    return seconds - max(ages) if len(ages) >= limit else inf


def fits(count: int, more: int, limit: int) -> bool:
    """Whether this many more may join those that count already.

    A group that the engine moves at once cannot be halved: where it alone is more than the limit, it passes
    while nothing else counts.
    """
    return count == 0 or count + more <= limit


def begun_ago(intent: Intent) -> float:
    return max(0.0, intent.age_seconds + intent.updated - intent.created)
