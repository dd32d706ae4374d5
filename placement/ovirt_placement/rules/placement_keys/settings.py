"""The numbers of a scheduling policy that steer placement keys, read from its properties."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache

from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.keys import number
from ovirt_placement.unit_parameters import PARAMETERS

#: Both units know them: they must reckon alike, and a policy may hold but one of them.
_NAMES = tuple(part.partition("=")[0] for part in PARAMETERS["PlacementKeyFilter"].split(";"))


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


def settings_of(properties: Mapping[str, str]) -> KeySettings:
    """The settings that a policy's units reckon with; the defaults where its numbers cannot be together."""
    return _parsed(tuple((name, properties[name]) for name in _NAMES if name in properties))


@lru_cache(maxsize=64)
def _parsed(given: tuple[tuple[str, str], ...]) -> KeySettings:
    try:
        return read_settings(dict(given))
    except ValueError:
        return DEFAULTS


def read_settings(properties: Mapping[str, str]) -> KeySettings:
    """Read the parameters, of which the engine has checked each by itself.

    Raises `ValueError` where they cannot be together.
    """
    return KeySettings(
        initial=_number(properties, "placement_initial", DEFAULTS.initial),
        final=_number(properties, "placement_final", DEFAULTS.final),
        steps=int(_number(properties, "placement_steps", Fraction(DEFAULTS.steps))),
        overhead_mb=int(_number(properties, "placement_overhead", Fraction(DEFAULTS.overhead_mb))),
        memory_ratio=number(properties.get("placement_memory_ratio")),
        cpu_ratio=number(properties.get("placement_cpu_ratio")),
        reserved_from_vms=properties.get("placement_reserved_from_vms") == "true",
        load_average=properties.get("placement_load") == "average",
    )


def _number(properties: Mapping[str, str], name: str, default: Fraction) -> Fraction:
    found = number(properties.get(name))
    return default if found is None else found
