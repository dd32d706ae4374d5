"""What commands of the enforcer print as JSON, where it is not what they have at hand."""

from __future__ import annotations

from typing import Any

import msgspec

from ovirt_placement.answers.plans.records import ClusterPlan, Plans
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement.store.history import HeldStep, RecordedMigration
from ovirt_placement.store.user_actions import UserAction


class RefusingHost(Record, frozen=True, omit_defaults=False):
    """A host that does not take the VM as things are."""

    host: Named
    reasons: tuple[str, ...]


class RoomFound(Record, frozen=True, omit_defaults=False):
    """The migrations that let a VM start."""

    vm: Named
    #: Where it can start afterwards; null if nothing was found.
    host: Named | None
    plan: ClusterPlan
    #: Why each host refuses it as things are; none, if one takes it.
    because: tuple[RefusingHost, ...]


class KeptVm(Record, frozen=True, omit_defaults=False):
    """A VM that stays where a plan took it."""

    id: str
    name: str
    because: str


class PlansBack(Plans, frozen=True, kw_only=True, omit_defaults=False):
    """The migrations that undo what a plan has done."""

    #: The id of the plan that is taken back.
    undoes: str
    kept: tuple[KeptVm, ...]


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
