"""Step 1: whether a host could run the VM at all, if there were no keys."""

from __future__ import annotations

import sys
from enum import StrEnum
from fractions import Fraction

from ovirt_placement.rules.verdict import Struct

_NO_LIMIT = sys.maxsize


class Shortage(StrEnum):
    NOT_UP = "not_up"
    #: Too little that is not handed out yet.
    UNCONTENDED = "uncontended"
    #: Too little really free.
    CONTENDED = "contended"


class Capacity(Struct, frozen=True, kw_only=True):
    """A host's memory and CPUs without the VM to be placed, and what is handed out of them. Memory in MiB."""

    up: bool
    memory_mb: int
    #: How often its memory and its CPUs may be handed out.
    memory_ratio: Fraction = Fraction(1)
    cpu_ratio: Fraction = Fraction(1)
    #: What belongs to the VMs on the host and to those on their way to it.
    allocated_mb: int
    allocated_vcpus: int
    cpus: int
    #: Really free, whatever was handed out.
    free_mb: int
    #: Whether `free_mb` leaves the host's own software out already.
    free_without_overhead: bool = False
    #: How busy its CPUs are: from 1 on, all of them; None where there are no statistics.
    load: Fraction | None = None

    @property
    def uncontended_mb(self) -> Fraction:
        """What may still be handed out; below 0 if too much is."""
        return self.memory_mb * self.memory_ratio - self.allocated_mb

    def largest_vm_mb(self, overhead_mb: int) -> int:
        """The most memory that a VM may have to find room here; below 0 if none may."""
        return min(limit for _, limit in self.limits(overhead_mb))

    def limits(self, overhead_mb: int) -> tuple[tuple[Shortage, int], ...]:
        """By each thing that there may be too little of, the most memory that a VM may have.

        What there is must exceed what a VM needs. That is a whole number of MiB, so the next one above what
        there is, less 1, is the most that it may need.
        """
        contended_overhead_mb = 0 if self.free_without_overhead else overhead_mb
        times, parts = self.memory_ratio.as_integer_ratio()
        uncontended_mb = -(-self.memory_mb * times // parts) - self.allocated_mb
        return (
            (Shortage.NOT_UP, _NO_LIMIT if self.up else -1),
            (Shortage.UNCONTENDED, uncontended_mb - overhead_mb - 1),
            (Shortage.CONTENDED, self.free_mb - contended_overhead_mb - 1),
        )


class Room(Struct, frozen=True):
    """What a VM needs on a host, what there is, and why it does not fit: nothing, if it does. In MiB."""

    uncontended_mb: Fraction
    uncontended_need_mb: int
    contended_mb: int
    contended_need_mb: int
    shortages: tuple[Shortage, ...]


def room(capacity: Capacity, memory_mb: int, overhead_mb: int) -> Room:
    """Hold the memory of a VM against a host's; what there is must exceed what is needed."""
    need = memory_mb + overhead_mb
    contended_need = memory_mb if capacity.free_without_overhead else need
    shortages = tuple(shortage for shortage, limit in capacity.limits(overhead_mb) if memory_mb > limit)
    return Room(capacity.uncontended_mb, need, capacity.free_mb, contended_need, shortages)
