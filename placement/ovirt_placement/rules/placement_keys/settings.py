"""The numbers of a scheduling policy that steer placement keys."""

from __future__ import annotations

from fractions import Fraction

from ovirt_placement.model.record import Record


class KeySettings(Record, frozen=True, kw_only=True):
    """How placements are decided; a `ValueError` says which of these numbers cannot be.

    Scores, thresholds and weights are on one scale without a unit, on which 80 is very good and -10 the
    limit of what is acceptable.
    """

    #: The threshold of the first round and of the last, and how many rounds there are.
    initial: Fraction = Fraction(80)
    final: Fraction = Fraction(-10)
    steps: int = 10
    #: What must stay free besides the VM for the host's own software, in MiB.
    overhead_mb: int = 1024
    #: How often memory and CPUs may be handed out on hosts that have no ratio of their own; None: as the
    #: cluster's overcommit says.
    memory_ratio: Fraction | None = None
    cpu_ratio: Fraction | None = None
    #: Whether reserved names count on a host when VMs bring them, too.
    reserved_from_vms: bool = False
    #: Whether #LOAD goes by the load average where it is known, in place of the CPU time used.
    load_average: bool = False

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ValueError(f"steps: {self.steps} is less than 1")
        if self.initial < self.final:
            raise ValueError(f"initial: {float(self.initial):g} is below final, {float(self.final):g}")
        if self.overhead_mb < 0:
            raise ValueError(f"overhead_mb: {self.overhead_mb} is less than 0")
        for name, ratio in (("memory_ratio", self.memory_ratio), ("cpu_ratio", self.cpu_ratio)):
            if ratio is not None and ratio <= 0:
                raise ValueError(f"{name}: {float(ratio):g} is not greater than 0")

    @property
    def refuses_keyless_vms(self) -> bool:
        """Whether a VM without keys finds no host: it scores 0, which must exceed the last threshold."""
        return self.final >= 0


DEFAULTS = KeySettings()
