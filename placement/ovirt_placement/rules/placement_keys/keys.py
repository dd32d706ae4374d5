"""Placement keys of a VM or host, the exact numbers that they are written with, and those that steer them."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

from ovirt_placement.model import PlacementKey
from ovirt_placement.model.record import CLUSTER, NODE, SYSTEM, Record, Worded, may_set

#: A number as a user wrote it, or as it was computed.
Written: TypeAlias = float | str | Fraction

#: A numerator and a positive denominator, reduced or not.
Ratio: TypeAlias = tuple[int, int]

#: Bounded, so that no text can make the arithmetic of a placement slow, or a sum too large for a float.
_NUMBER = re.compile(r"[+-]?(\d{1,40}(\.\d{0,40})?|\.\d{1,40})([eE][+-]?\d{1,2})?", re.ASCII)

ZERO = Fraction(0)


def number(written: Written | None) -> Fraction | None:
    """The exact decimal that was written; None for words, nothing, NaN and the infinite."""
    if written is None or isinstance(written, Fraction):
        return written
    return _decimal(written)


@lru_cache(maxsize=4096)
def ratio(written: Written) -> Ratio:
    """The same as a pair, which hashes and compares quickly; what is no number counts as 0."""
    return (number(written) or ZERO).as_integer_ratio()


@lru_cache(maxsize=4096)
def _decimal(written: float | str) -> Fraction | None:
    text = written.strip() if isinstance(written, str) else repr(written)
    return Fraction(text) if _NUMBER.fullmatch(text) else None


#: Computed for every host, from 0 (idle) to 1 (full).
RAM, CPU, LOAD = "#RAM", "#CPU", "#LOAD"
SPECIAL_NAMES = frozenset({RAM, CPU, LOAD})

#: Set on a host: how often its memory and its CPUs may be handed out.
RAM_RATIO, CPU_RATIO = "#RAM_RATIO", "#CPU_RATIO"
RATIO_NAMES = frozenset({RAM_RATIO, CPU_RATIO})
#: As far as the parameters of a policy go.
_RATIO_LIMIT = 1000

RESERVED_PREFIX = "_"
SPECIAL_PREFIX = "#"


class KeyKind(StrEnum):
    #: Not a placement key at all: no weight or no number, and not on a host.
    NORMAL = "normal"
    PLACEMENT = "placement"
    #: On a host, with a weight: copied to the VMs that start there.
    STICKY = "sticky"
    #: Shows a property of hosts to customers; named with a leading underscore.
    RESERVED = "reserved"
    #: Computed; named with a leading hash sign.
    SPECIAL = "special"
    #: On a host: no key that anything is held against, but how often it may hand out what it has.
    RATIO = "ratio"


_RATIOS = f"{RAM_RATIO} and {CPU_RATIO}"


class Code(Worded):
    """What is wrong with a key. `ignored_because` says what a placement makes of it."""

    NAME_EMPTY = "name-empty", "it has no name"
    VALUE_NOT_NUMERIC = "value-not-numeric", "its value is no number"
    WEIGHT_ZERO = "weight-zero", "it has no weight, so it is no placement key"
    RESERVED_AS_SYSTEM = (
        "reserved-as-system",
        "names that start with _ are for billing entities and customers to weigh",
    )
    SPECIAL_UNKNOWN = (
        "special-unknown",
        f"of the names that start with #, there are only #RAM, #CPU and #LOAD, and on hosts {_RATIOS}",
    )
    SPECIAL_NOT_SYSTEM = "special-not-system", "only the operator weighs #RAM, #CPU and #LOAD"
    SPECIAL_ON_NODE = (
        "special-on-node",
        f"names that start with # are computed for hosts and cannot be set there, but for {_RATIOS}",
    )
    RATIO_OUT_OF_RANGE = "ratio-out-of-range", "a contention ratio is greater than 0 and less than 1000"
    SPECIAL_CLUSTER_VALUE_NOT_0 = (
        "special-cluster-value-not-0",
        "on a cluster its value must be 0; only its weight is yours to choose",
    )
    CUSTOMER_KEY_NOT_ALLOWED_HERE = (
        "customer-key-not-allowed-here",
        "the user who set it may not set keys on this level",
    )
    STICKY_NOT_ON_NODE = "sticky-not-on-node", "only keys of hosts can be sticky"
    STICKY_WITHOUT_WEIGHT = "sticky-without-weight", "a sticky key needs a weight"
    STICKY_AND_RESERVED = "sticky-and-reserved", "a sticky key cannot be one that starts with _ or #"
    #: Of a cluster's hosts, not of one key: they must carry the same names.
    NODE_KEY_SET_DIFFERS = "node-key-set-differs", "other hosts of its cluster have keys that it lacks"
    #: Of a VM's own property, not of one key.
    PROPERTY_UNREADABLE = (
        "property-unreadable",
        "it is not of the form NAME:VALUE:WEIGHT,... and all of it is ignored",
    )


def is_reserved(name: str) -> bool:
    return name.startswith(RESERVED_PREFIX)


def is_special(name: str) -> bool:
    return name.startswith(SPECIAL_PREFIX)


def is_ratio(key: PlacementKey) -> bool:
    """Whether it is a contention ratio of a host: each host may have its own, or none."""
    return key.name in RATIO_NAMES and key.level == NODE


def key_kind(key: PlacementKey) -> KeyKind:
    on_node = key.level == NODE
    if not on_node and (number(key.value) is None or not number(key.weight)):
        return KeyKind.NORMAL
    if is_ratio(key):
        return KeyKind.RATIO
    if is_special(key.name):
        return KeyKind.SPECIAL
    if is_reserved(key.name):
        return KeyKind.RESERVED
    return KeyKind.STICKY if on_node and key.sticky and number(key.weight) else KeyKind.PLACEMENT


def validate(key: PlacementKey) -> tuple[Code, ...]:
    """All that is wrong with a key that is meant for a placement; nothing, if it is fine."""
    checks = _ON_NODE if key.level == NODE else _ON_RESOURCE
    return tuple(code for code, fails in checks if fails(key))


def ignored_because(key: PlacementKey) -> tuple[Code, ...]:
    """What keeps a key out of every placement; nothing, if it takes part.

    Of a wrong sticky flag only the flag is ignored: the key may be what keeps strangers off a host. Keys
    in the wrong list take part there and match nothing, since no host has their name in that list.
    """
    return tuple(code for code in validate(key) if code not in _HARMLESS)


_HARMLESS = frozenset(
    {
        Code.STICKY_NOT_ON_NODE,
        Code.STICKY_WITHOUT_WEIGHT,
        Code.STICKY_AND_RESERVED,
        Code.RESERVED_AS_SYSTEM,
        Code.SPECIAL_UNKNOWN,
        Code.SPECIAL_NOT_SYSTEM,
    }
)


def _bare(key: PlacementKey) -> bool:
    return key.name.strip() in {"", RESERVED_PREFIX, SPECIAL_PREFIX}


def _special(key: PlacementKey) -> bool:
    return is_special(key.name) and not _bare(key)


def _reserved(key: PlacementKey) -> bool:
    return is_reserved(key.name) and not _bare(key)


def _out_of_range(key: PlacementKey) -> bool:
    value = number(key.value)
    return is_ratio(key) and value is not None and not 0 < value < _RATIO_LIMIT


_Checks = tuple[tuple[Code, Callable[[PlacementKey], bool]], ...]

_ANYWHERE: _Checks = (
    (Code.NAME_EMPTY, _bare),
    (Code.VALUE_NOT_NUMERIC, lambda key: number(key.value) is None),
    (Code.CUSTOMER_KEY_NOT_ALLOWED_HERE, lambda key: not may_set(key.key_class, key.level)),
)
_ON_NODE: _Checks = (
    *_ANYWHERE,
    (Code.SPECIAL_ON_NODE, lambda key: _special(key) and not is_ratio(key)),
    (Code.RATIO_OUT_OF_RANGE, _out_of_range),
    (Code.STICKY_WITHOUT_WEIGHT, lambda key: key.sticky and not number(key.weight)),
    (Code.STICKY_AND_RESERVED, lambda key: key.sticky and (_reserved(key) or is_ratio(key))),
)
_ON_RESOURCE: _Checks = (
    *_ANYWHERE,
    (Code.WEIGHT_ZERO, lambda key: not number(key.weight)),
    (Code.RESERVED_AS_SYSTEM, lambda key: key.key_class == SYSTEM and _reserved(key)),
    (Code.SPECIAL_UNKNOWN, lambda key: _special(key) and key.name not in SPECIAL_NAMES),
    (Code.SPECIAL_NOT_SYSTEM, lambda key: key.key_class != SYSTEM and _special(key)),
    (
        Code.SPECIAL_CLUSTER_VALUE_NOT_0,
        lambda key: key.level == CLUSTER and key.name in SPECIAL_NAMES and bool(number(key.value)),
    ),
    (Code.STICKY_NOT_ON_NODE, lambda key: key.sticky),
)


#: As the unit's parameter has it; each takes time and memory, and who may call the proxy may name any number.
MOST_STEPS = 100


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
        if not 1 <= self.steps <= MOST_STEPS:
            raise ValueError(f"steps: {self.steps} is not from 1 to {MOST_STEPS}")
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
    """The settings that a policy's units reckon with; the defaults where its numbers cannot be together.

    Both units know all of them: they must reckon alike, and a policy may hold but one of them.
    """
    return _parsed(tuple(one for one in properties.items() if one[0].startswith("placement_")))


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
