"""What a rule asks of where VMs run, as something that can be checked (BtrPlace calls it a constraint).

A rule's file states its invariant and says of any placement whether it is satisfied. Violations, the
legality of planned migrations and the tests all ask this one checker.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from ovirt_placement.model.record import Record
from ovirt_placement.rules.forms import Form
from ovirt_placement.rules.placement import Placement


class Constraint(Record, frozen=True, kw_only=True):
    """An invariant over some VMs of one cluster; a subclass says which."""

    #: Which half of an affinity group asks for it: `vm_affinity` or `host_affinity`.
    family: ClassVar[str]
    #: What it asks of its VMs, in words: "together", "apart", "on its hosts" ...
    asks: ClassVar[str]
    #: Whether it draws VMs to something; else it keeps them off something.
    positive: ClassVar[bool]
    #: Whether the engine's own filters judge it as well: they refuse what `admits` refuses, however
    #: violated it is already.
    engine_judges: ClassVar[bool] = True

    #: Ids of the affinity groups that ask for it, or of a legacy label.
    groups: tuple[str, ...]
    #: All members, whether or not they run.
    vms: tuple[str, ...]
    #: Hard rules must be satisfied; soft ones should, the more so the higher the priority.
    hard: bool
    priority: float

    @property
    def form(self) -> Form | None:
        """What it asks of its VMs as a planner computes with it; None where only this checker can judge."""
        return None

    def offenders(self, placement: Placement) -> tuple[str, ...]:
        """Members that stand wrong; none if the invariant is satisfied."""
        raise NotImplementedError

    @property
    def binding(self) -> bool:
        """Whether no migration may violate it, or violate it more."""
        return self.hard

    def surplus(self, placement: Placement) -> int:
        """How many members must move at least to satisfy it, with room everywhere; 0 if it is."""
        raise NotImplementedError

    def excess(self, placement: Placement) -> int:
        """How far it is from being satisfied, in VMs unless it counts something else; 0 if it is."""
        return self.surplus(placement)

    def admits(self, vm: str, host: str, placement: Placement) -> bool:
        """Whether a member may come to a host while all others stay where they are.

        It may join a split positive group on any of its hosts, though that repairs nothing.
        """
        raise NotImplementedError

    def lets(self, vm: str, host: str, placement: Placement) -> bool:
        """Whether a member that runs may migrate to a host.

        Where we alone judge, a step is judged by what it makes worse: it may come to where it stands wrong
        as well, if the rule is violated already and `excess` does not grow.
        """
        return self.admits(vm, host, placement)

    def keeps(self, placement: Placement) -> bool:
        """Whether the invariant is satisfied."""
        return not self.offenders(placement)

    def violated_groups(self, placement: Placement) -> tuple[str, ...]:
        """Of `groups`, those that are violated taken alone."""
        return self.groups if self.offenders(placement) else ()

    def as_engine_lists(self) -> tuple[str, ...]:
        """All members in the order in which the engine goes through them."""
        return self.vms

    def running(self, placement: Placement) -> Iterator[tuple[str, str]]:
        """Members that run, each with its host."""
        for vm in self.vms:
            host = placement.runs_on(vm)
            if host is not None:
                yield vm, host
