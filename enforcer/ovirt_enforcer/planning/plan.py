"""What the enforcer means to do in one cluster, as data: steps in order, and what stays broken and why."""

from __future__ import annotations

import msgspec


class Struct(msgspec.Struct, frozen=True, kw_only=True):
    """An immutable record that can be written as JSON."""


class Step(Struct, frozen=True):
    """One migration request: of a VM, or of a whole positive group at once. Everything is given as ids."""

    #: All VMs that it moves, with the host that each leaves, in the same order.
    vms: tuple[str, ...]
    sources: tuple[str, ...]
    target: str
    #: Broken groups that the VMs belong to; none, if the step only makes room for another.
    groups: tuple[str, ...]
    #: Those of `groups` that hold afterwards.
    mends: tuple[str, ...]

    @property
    def closure(self) -> bool:
        """Whether the engine is asked to move all VMs of the positive group with the first one."""
        return len(self.vms) > 1


class Remaining(Struct, frozen=True):
    """A broken group (or several that shared VMs tie together) that the steps do not mend."""

    groups: tuple[str, ...]
    vms: tuple[str, ...]
    #: What stands in the way, as sentences with names.
    because: tuple[str, ...]


class Refused(Struct, frozen=True):
    """A step that a search took for legal and a rule refuses: the two disagree, and the rule is right."""

    step: Step
    #: By which rule and why, as sentences with names.
    because: tuple[str, ...]


class Plan(Struct, frozen=True):
    """The steps for one cluster. Every state between two steps is legal in capacity and in hard rules."""

    cluster: str
    steps: tuple[Step, ...] = ()
    remaining: tuple[Remaining, ...] = ()
    #: Steps that were dropped.
    refused: tuple[Refused, ...] = ()
    #: No plan mends more groups, and none as many with fewer migrations.
    proven: bool = True
    #: Migrations that any plan needs that mends all that can be mended.
    at_least: int = 0

    @property
    def migrations(self) -> int:
        """How many VMs are migrated; a VM that is migrated twice counts twice."""
        return sum(len(step.vms) for step in self.steps)
