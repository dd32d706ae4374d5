"""What the administrator asks for of a policy, and what the engine has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ovirt_placement.answers.policy_units import Admission
from ovirt_placement.answers.setup.former import made_like
from ovirt_placement.engine.parsing.policies import PolicyHead, PolicyUnit
from ovirt_placement.engine.writing.policies import NEW, PolicyContent, PolicyUser


@dataclass(frozen=True)
class UnitChoice:
    """What the administrator asks for."""

    policy: str
    factors: Mapping[str, int] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    placement_keys: bool = False
    ha_admission: Admission | None = None


@dataclass(frozen=True)
class Seen:
    """What the engine has."""

    units: Mapping[str, PolicyUnit]
    #: The engine's own policy that ours is made like: usually `none`.
    base: PolicyContent
    #: The policy of the name asked for, if there is one.
    target: PolicyContent | None
    #: The clusters that are to use it.
    clusters: tuple[PolicyUser, ...]

    def name(self, unit: str) -> str:
        return self.units[unit].name if unit in self.units else unit


def policy_at_first(seen: Seen, choice: UnitChoice) -> PolicyContent:
    """Return the policy before any unit is added: as it is, or as we make it."""
    description = made_like(seen.base.head.name)
    made = PolicyHead(id=NEW, name=choice.policy, description=description, locked=False, properties={})
    return seen.target or PolicyContent(made, filters=(), weights=(), balances=())
