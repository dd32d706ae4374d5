"""What people get as data who ask for room for a VM, or for the way back from a plan."""

from __future__ import annotations

from ovirt_placement.answers.plans.records import ClusterPlan, Plans
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record


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
