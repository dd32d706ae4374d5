"""How strong the places are where a placement key may be set, and whose keys each of them takes."""

from __future__ import annotations

from ovirt_placement.key_levels import (
    BILLING_ENTITY,
    CLASSES,
    CLUSTER,
    CUSTOMER,
    LEVELS,
    NODE,
    SERVER,
    SETTABLE,
    STICKY,
    SYSTEM,
)

#: With the words themselves, which the state file shares.
__all__ = [
    "BILLING_ENTITY",
    "CLASSES",
    "CLUSTER",
    "CUSTOMER",
    "CUSTOMER_LEVELS",
    "LEVELS",
    "NODE",
    "SERVER",
    "SETTABLE",
    "STICKY",
    "SYSTEM",
    "may_set",
    "strength",
]

#: Customers key only what belongs to them; operators (system) and billing entities (be) key every level.
CUSTOMER_LEVELS = frozenset({"image", SERVER, "disk", "network", "nic"})

_STRENGTH = {level: strength for strength, level in enumerate(LEVELS)}


def strength(level: str) -> int | None:
    """How strong a level is in the hierarchy of a VM, from 0 on; None if it has no part in it."""
    return _STRENGTH.get(level)


def may_set(key_class: str, level: str) -> bool:
    """Whether keys of this class may stand on this level; only the operator keys hosts."""
    if level == NODE:
        return key_class == SYSTEM
    return key_class != CUSTOMER or level in CUSTOMER_LEVELS
