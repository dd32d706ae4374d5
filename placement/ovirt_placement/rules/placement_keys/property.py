"""The keys that a user writes into the engine itself: the VM custom property `placement_keys`."""

from __future__ import annotations

import re

from ovirt_placement.model import PlacementKey, Vm
from ovirt_placement.model.key_levels import CUSTOMER, SERVER

NAME = "placement_keys"

_NUMBER = r"-?[0-9]+(\.[0-9]+)?"
_KEY = rf"[A-Za-z_][A-Za-z0-9_.-]{{0,49}}:{_NUMBER}:{_NUMBER}"

#: What the engine is to accept; free of the `;` and `=` that end and split a property there.
PATTERN = rf"{_KEY}(,{_KEY})*"

_WHOLE = re.compile(PATTERN)


def is_readable(text: str) -> bool:
    """Whether a property has the form `NAME:VALUE:WEIGHT,...`; an empty one sets no keys."""
    return not text or _WHOLE.fullmatch(text) is not None


def property_keys(vm: Vm) -> tuple[PlacementKey, ...]:
    """The VM's own customer keys from its property; none if it cannot be read, which must stop no start."""
    text = vm.custom_properties.get(NAME, "")
    if not text or not is_readable(text):
        return ()
    written = (entry.split(":") for entry in text.split(","))
    return tuple(
        PlacementKey(
            level=SERVER, resource=vm.id, key_class=CUSTOMER, name=name, value=value, weight=float(weight)
        )
        for name, value, weight in written
    )
