"""Affinity groups and labels."""

from __future__ import annotations

from math import floor
from typing import Final

from ovirt_placement.model.record import Struct

#: The engine keeps a priority as a whole number of these. Source: AffinityGroup.PRIORITY_PRECISION.
STEPS_PER_UNIT: Final = 10**7


def fixed_point(priority: float) -> int:
    """A group's priority as the engine compares it: a whole number, halves rounded up.

    Source: AffinityGroup.setPriorityFromDouble.
    """
    steps = priority * STEPS_PER_UNIT
    return floor(steps) + (steps - floor(steps) >= 0.5)


class AffinityRule(Struct, frozen=True):
    """One half of an affinity group. The enforcing flag may be set on a disabled rule: ask `hard`."""

    enabled: bool
    positive: bool
    enforcing: bool

    @property
    def hard(self) -> bool:
        return self.enabled and self.enforcing

    @property
    def soft(self) -> bool:
        return self.enabled and not self.enforcing


class AffinityGroup(Struct, frozen=True):
    id: str
    name: str
    cluster: str
    #: Higher matters more; rounded to 1e-7 by the engine.
    priority: float
    vms_rule: AffinityRule
    hosts_rule: AffinityRule
    vms: tuple[str, ...]
    hosts: tuple[str, ...]
    vm_labels: tuple[str, ...]
    host_labels: tuple[str, ...]


class AffinityLabel(Struct, frozen=True):
    id: str
    name: str
    vms: tuple[str, ...]
    hosts: tuple[str, ...]
    #: The legacy flag "implicit affinity group", honoured by clusters below 4.4.
    implicit: bool = False
