"""What commands of the enforcer print as JSON, where it is not what they have at hand."""

from __future__ import annotations

from typing import Any

import msgspec

from ovirt_placement.model.record import Record
from ovirt_placement.store.history import HeldStep, RecordedMigration
from ovirt_placement.store.user_actions import UserAction


class MeasuredMigration(RecordedMigration, frozen=True, kw_only=True):
    """A migration of a plan."""

    #: From before it was asked for until its state was last changed.
    seconds_: float = msgspec.field(name="seconds")


class UserActionDone(UserAction, frozen=True, kw_only=True):
    """What somebody did by a command. Moments are seconds since the epoch."""

    #: Who did what, where, and what came of it.
    sentence_: str = msgspec.field(name="sentence")


class PlanDecided(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A plan that was made, with all that came of it. Times are seconds since the epoch."""

    id: str
    cluster: str
    #: Of the lease under which it was made; null if by a person.
    epoch: int | None
    #: As one of `clusters` that `plan --json` prints, by the release that made it.
    document: dict[str, Any]
    created: float
    updated: float
    migrations: tuple[MeasuredMigration, ...]
    #: Steps that a gate held back.
    held: tuple[HeldStep, ...]
