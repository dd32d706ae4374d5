"""What gates remember: the migrations that were asked of the engine, by VM, by how they ended, by age."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Final

from ovirt_placement.store.intents import Intent, IntentState

HOUR_SECONDS: Final = 3600.0
#: The error of an intent whose request surely never left this machine: it counts for no gate. All others do,
#: those of which the engine shows no trace as well.
NEVER_ASKED: Final = "never reached the engine"
#: How the error of an intent begins that nobody answered, and that neither events nor the VM show.
NO_TRACE: Final = "no answer, and no trace of it in the engine"
#: How the error of an intent begins that the engine refused: the target is remembered, nothing moved.
REFUSED: Final = "refused: "


def asked(intents: Iterable[Intent]) -> tuple[Intent, ...]:
    """Those that the engine was asked for."""
    return tuple(intent for intent in intents if intent.error != NEVER_ASKED)


def refused(intent: Intent) -> bool:
    """Whether the engine refused it: no migration took place, and another target may do."""
    return intent.state is IntentState.FAILED and (intent.error or "").startswith(REFUSED)


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
    """Whether so many more may join those that count already.

    A group that the engine moves at once cannot be halved: where it alone is more than the limit, it passes
    while nothing else counts.
    """
    return count == 0 or count + more <= limit


def begun_ago(intent: Intent) -> float:
    return max(0.0, intent.age_seconds + intent.updated - intent.created)
