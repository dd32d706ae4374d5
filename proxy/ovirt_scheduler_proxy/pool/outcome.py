"""How one call of one unit ended, and the sentence that an administrator reads where it ended badly."""

from __future__ import annotations

from enum import Enum

import msgspec


class Cause(Enum):
    """Why a unit gave no usable answer. The value names it in logs and metrics."""

    MISSING = "missing"
    RAISED = "raised"
    #: A filter's own will, shown by an exception whose attribute `refuses` is true: no host, and why.
    REFUSED = "refused"
    #: What the unit needs is not there yet, shown by an exception whose attribute `awaits` is true.
    AWAITED = "awaited"
    EXITED = "exited"
    CRASHED = "crashed"
    OVERRAN = "overran"
    MEMORY = "memory"
    FLOOD = "flood"
    INVALID = "invalid"
    NOTHING = "nothing"
    CUT_OFF = "cut_off"
    #: Others held all workers: the unit is not to blame.
    NO_WORKER = "no_worker"
    #: There was no worker at all, and none could be started.
    NOT_STARTED = "not_started"


class Failure(msgspec.Struct, frozen=True):
    """Why a unit could not be heard: `sentence` follows the unit's name."""

    cause: Cause
    sentence: str


class Outcome(msgspec.Struct, frozen=True):
    """What came of asking one unit: a body to decode, or a failure."""

    body: bytes = b""
    failure: Failure | None = None
    #: Seconds that the unit itself ran.
    seconds: float = 0.0
    #: What the unit printed besides its answer, and what it wrote to stderr.
    printed: str = ""
    errors: str = ""
    #: Age of the state that the unit decided on, where its answer says so.
    state_age_seconds: float | None = None
    #: Why a filter dropped hosts, as JSON, where its answer says so.
    reasons: bytes = b""


def failed(cause: Cause, sentence: str, seconds: float = 0.0, errors: str = "") -> Outcome:
    return Outcome(failure=Failure(cause, sentence), seconds=seconds, errors=errors)
