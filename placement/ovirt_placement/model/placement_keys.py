"""Placement keys: those that people set, those that VMs are remembered by, their levels and their words."""

import unicodedata
from typing import Final

import msgspec

from ovirt_placement.model.record import Struct
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

#: Keys of a host: they describe it and have no part in the hierarchy of a VM.
NODE = "node"

CLUSTER = "cluster"
SERVER = "server"

#: Copies of sticky node keys stand here: weaker than an explicit key of the server, stronger than its offer.
STICKY = "server_sticky"

#: What a VM's keys are compiled from; a later level wins. An offer is what its resource was made from.
LEVELS = (
    CLUSTER,
    "billing_entity",
    "customer_offer",
    "customer",
    "image_offer",
    "image",
    "vdc_offer",
    "vdc",
    "server_offer",
    STICKY,
    SERVER,
    "disk_offer",
    "disk",
    "network_offer",
    "network",
    "nic_offer",
    "nic",
)

#: Where users may set a key; sticky copies are made by starts alone.
SETTABLE = (*(level for level in LEVELS if level != STICKY), NODE)

SYSTEM = "system"
BILLING_ENTITY = "be"
CUSTOMER = "customer"
#: Who sets keys: the operator, a billing entity, the customer.
CLASSES = (SYSTEM, BILLING_ENTITY, CUSTOMER)

#: Customers key only what belongs to them; operators (system) and billing entities (be) key every level.
CUSTOMER_LEVELS = frozenset({"image", SERVER, "disk", "network", "nic"})

#: What administrators call what stands on a level.
_CALLED = {"vm": SERVER, "host": NODE}

_STRENGTH = {level: strength for strength, level in enumerate(LEVELS)}
MOST_CHARACTERS: Final = 255
#: Control and format characters, halves of characters, ends of lines.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def level_of(word: str) -> str:
    """The level that a word on the command line means: one that is a level, or `vm`, or `host`."""
    return _CALLED.get(word, word)


def check_level(level: str, path: str = "") -> None:
    """Raise `UserError`, with the nearest level or all of them, if keys cannot be set on it."""
    if level not in SETTABLE:
        hint = nearest(level_of(level), SETTABLE) or f"; levels: {', '.join(SETTABLE)}"
        raise UserError(f'{path}unknown level "{level}"{hint}')


def strength(level: str) -> int | None:
    """How strong a level is in the hierarchy of a VM, from 0 on; None if it has no part in it."""
    return _STRENGTH.get(level)


def may_set(key_class: str, level: str) -> bool:
    """Whether keys of this class may stand on this level; only the operator keys hosts."""
    if level == NODE:
        return key_class == SYSTEM
    return key_class != CUSTOMER or level in CUSTOMER_LEVELS


class PlacementKey(Struct, frozen=True):
    level: str
    resource: str
    #: The class of key: system, be or customer.
    key_class: str = msgspec.field(name="class")
    name: str
    #: A number, or whatever its author wrote in place of one.
    value: float | str
    weight: float | None = None
    sticky: bool = False


class FrozenKeys(Struct, frozen=True):
    vm: str
    keys: tuple[tuple[str, float], ...]


class StickyCopy(Struct, frozen=True):
    vm: str
    name: str
    value: float
    weight: float


def check_text(key: PlacementKey) -> None:
    """Raise `UserError` if the key's name is not legible, or its value is endless."""
    for kind, text in (("name", key.name), ("value", key.value)):
        if isinstance(text, str) and len(text) > MOST_CHARACTERS:
            raise UserError(f"{kind}: {len(text):,} characters are too many: at most {MOST_CHARACTERS}")
    if any(unicodedata.category(one) in _UNSEEN for one in key.name):
        raise UserError(f"name: {key.name!a} holds characters that cannot be seen")
