"""What was before setup, remembered in the description of the policy: the engine keeps it, all can see it."""

from __future__ import annotations

import re

import msgspec

from ovirt_placement.model.amounts import counted
from ovirt_service.errors import UserError

#: The description of a policy that we made; of another's policy we change no more than we must.
_MADE = "As the policy {origin}, with the units of ovirt-placement"
_ORIGIN = re.compile(re.escape(_MADE).replace(r"\{origin\}", "(.+?)"))

_OPENING, _CLOSING = "[before ovirt-placement: ", "]"
#: As long as the engine lets a description be.
_LONGEST = 4000


class FormerUnits(msgspec.Struct, frozen=True, omit_defaults=True):
    """What of another's policy was otherwise than after setup."""

    #: The engine's units that it did not have, by name.
    filters_lacked: tuple[str, ...] = ()
    weights_lacked: tuple[str, ...] = ()
    #: The name of the balance that ours took the place of.
    balance: str | None = None
    #: Factors of the engine's weights that setup has changed since, by name.
    factors: dict[str, int] = {}
    #: Those that no unit of it knows any more.
    properties: dict[str, str] = {}


class FormerCluster(msgspec.Struct, frozen=True, omit_defaults=True):
    """The policy that a cluster had, by id, and its properties that no unit of the new one knows."""

    policy: str | None = None
    properties: dict[str, str] = {}


class Former(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was before setup, as far as it is remembered."""

    #: None of a policy that we made, or that had our units before anything was remembered.
    units: FormerUnits | None = None
    #: By id; of a policy that we made, only those that did not come from the policy that it is like.
    clusters: dict[str, FormerCluster] = {}
    #: Parameters of the policy that are not there until a weight whose factor changes is back.
    away: dict[str, str] = {}


NOTHING = Former()


def made_like(origin: str) -> str:
    """The description of a policy that we make like one of the engine's own."""
    return _MADE.format(origin=origin)


def origin_of(description: str) -> str | None:
    """The name of the policy that we made this one like; None if we did not make it."""
    found = _ORIGIN.match(description)
    return None if found is None else found[1]


def remembered(description: str) -> Former:
    """What a description remembers; nothing, if somebody has made it unreadable."""
    _, opening, text = description.rpartition(_OPENING)
    if not opening:
        return NOTHING
    try:
        return msgspec.json.decode(text.removesuffix(_CLOSING), type=Former)
    except msgspec.DecodeError:
        return NOTHING


def forgotten(description: str) -> str:
    """The description without what it remembers, as it was."""
    if remembered(description) == NOTHING:
        return description
    return description.rpartition(_OPENING)[0].removesuffix(" ")


def with_all_back(description: str) -> str:
    """The description that no parameter is away by."""
    return with_former(description, msgspec.structs.replace(remembered(description), away={}))


def with_former(description: str, former: Former) -> str:
    """The description with what it is to remember. Raises `UserError` if the engine has no room for it."""
    own = forgotten(description)
    if former == NOTHING:
        return own
    text = f"{_OPENING}{msgspec.json.encode(former).decode()}{_CLOSING}"
    found = f"{own} {text}" if own else text
    if len(found) > _LONGEST:
        raise UserError(
            "the description of the policy has no room to remember what"
            f" {counted(len(former.clusters), 'cluster')} had before:"
            " give some of them another policy by --policy"
        )
    return found
