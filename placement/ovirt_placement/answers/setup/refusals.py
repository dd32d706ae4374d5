"""What the engine lacks or would refuse, said before anything is sent."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from ovirt_placement.answers import policy_units as ours
from ovirt_placement.answers.setup.choice import Seen
from ovirt_placement.answers.setup.matching import matches
from ovirt_placement.engine.parsing.policies import PolicyUnit
from ovirt_placement.engine.writing.policies import PolicyContent
from ovirt_placement.rules.rule import UnitKind
from ovirt_service.errors import UserError


def check_unlocked(policy: PolicyContent) -> None:
    if policy.head.locked:
        raise UserError(
            f"the policy {policy.head.name} is the engine's own and locked: choose another name by --policy"
        )


def check_unspoilt(units: Mapping[str, PolicyUnit], policy: PolicyContent) -> None:
    for unit, times in Counter(policy.units).items():
        if times > 1:
            raise UserError(
                f"the engine has {units[unit].name if unit in units else unit} twice in the policy"
                f" {policy.head.name}"
                " and refuses every change of it: restart ovirt-engine, which forgets the second"
            )


def usable_unit(seen: Seen, kind: UnitKind, name: str, *, internal: bool = False) -> str:
    """Find the id of a unit that the policy must have."""
    found = ours.unit_id(seen.units, kind, name, internal=internal)
    if found is None:
        raise UserError(
            f"the engine has no {kind.replace('_', ' ')} unit {name}: it asks the proxy for its units"
            " only when it starts; `ovirt-placement doctor` says what to do"
        )
    if not seen.units[found].enabled:
        raise UserError(
            f"the engine has disabled {name}: the proxy did not offer it when the engine started;"
            " `ovirt-placement doctor` says what to do"
        )
    return found


def check_value(name: str, value: str, regex: str, where: str) -> None:
    try:
        fits = matches(regex, value)
    except re.error:
        return  # an expression of Java's that is none of Python's: the engine will judge
    if fits is False:
        raise UserError(
            f"{where}: {name}={value} does not match {regex}: give a value by --property {name}=..."
        )
