"""Step 2: which keys a VM is placed by. On each name the strongest level wins, and its weight comes along."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from ovirt_placement.model import PlacementKey
from ovirt_placement.model.placement_keys import CUSTOMER, SYSTEM, strength
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.exact import ZERO, number
from ovirt_placement.rules.placement_keys.keys import Code, ignored_because


class CompiledKey(Record, frozen=True):
    """A key that takes part, where it came from, and the weaker keys of its name that it hides."""

    name: str
    value: Fraction
    weight: Fraction
    source: PlacementKey
    hidden: tuple[PlacementKey, ...] = ()


class MistakenKey(Record, frozen=True):
    """A key and what is wrong with it."""

    key: PlacementKey
    codes: tuple[Code, ...]


class CompiledKeys(Record, frozen=True):
    """The keys of one VM by name; the customer's are those of its billing entity and its own together."""

    system: Mapping[str, CompiledKey] = {}
    customer: Mapping[str, CompiledKey] = {}
    #: Keys that take no part and hide nothing.
    ignored: tuple[MistakenKey, ...] = ()


def compile_keys(keys: Iterable[PlacementKey]) -> CompiledKeys:
    """Compile the keys of all resources that a VM depends on, given in any order.

    On one resource a customer's key wins over the billing entity's, and a later key over an earlier
    one. Keys of other levels, such as a host's, have no effect.
    """
    ordered = sorted(
        (level, key.key_class == CUSTOMER, position, key)
        for position, key in enumerate(keys)
        if (level := strength(key.level)) is not None
    )
    system: dict[str, CompiledKey] = {}
    customer: dict[str, CompiledKey] = {}
    ignored = []
    for _, _, _, key in ordered:
        if codes := ignored_because(key):
            ignored.append(MistakenKey(key, codes))
        else:
            compiled = system if key.key_class == SYSTEM else customer
            compiled[key.name] = _compiled(key, compiled.get(key.name))
    return CompiledKeys(system, customer, tuple(ignored))


def _compiled(key: PlacementKey, weaker: CompiledKey | None) -> CompiledKey:
    hidden = (*weaker.hidden, weaker.source) if weaker else ()
    return CompiledKey(key.name, number(key.value) or ZERO, number(key.weight) or ZERO, key, hidden)
