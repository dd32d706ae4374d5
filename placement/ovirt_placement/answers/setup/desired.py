"""What a policy is to hold: units, factors, properties; and what the engine would refuse."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ovirt_placement.answers.setup import units
from ovirt_placement.answers.setup.previous import Seen, UnitChoice, origin_of
from ovirt_placement.answers.setup.requests import numbers
from ovirt_placement.answers.setup.units import unit_id
from ovirt_placement.engine.parsing.policies import PolicyUnit
from ovirt_placement.engine.writing.policies import PolicyContent, PolicyUser
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

# -- What the engine lacks or would refuse, said before anything is sent.


#: What an administrator hardly notices.
_LONGEST_SECONDS = 2.0
#: Values and expressions together that take no time worth a process.
_SHORT = 12

_PROGRAM = """
import re, sys
regex, value = (text.encode("utf-8", "surrogateescape").decode() for text in sys.argv[1:])
sys.exit(0 if re.fullmatch(regex, value) else 1)
"""


def matches(regex: str, value: str) -> bool | None:
    """Whether the whole value matches; None where that takes too long to know.

    Raises `re.error` for an expression that is none of Python's.
    """
    compiled = re.compile(regex)
    if len(value) <= _SHORT:
        return compiled.fullmatch(value) is not None
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter; the texts are arguments, and no program
            [sys.executable, "-I", "-c", _PROGRAM, regex, value], timeout=_LONGEST_SECONDS, check=False
        )
    except (subprocess.TimeoutExpired, OSError, ValueError):
        return None
    return done.returncode == 0


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
    found = unit_id(seen.units, kind, name, internal=internal)
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


# -- What the finished policy is to hold: its filters, weights and balance.
@dataclass(frozen=True)
class DesiredUnits:
    #: Positions by unit.
    filters: Mapping[str, int]
    #: Factors by unit.
    weights: Mapping[str, int]
    balance: str
    #: Ours that others take the place of.
    replaced: frozenset[str] = frozenset()


def desired_units(seen: Seen, policy: PolicyContent, choice: UnitChoice) -> DesiredUnits:
    """Raise `UserError` for a unit that the engine lacks."""
    filters, weights = _filters(seen, policy, choice), _weights(seen, policy, choice)
    replaced = _replaced(seen, policy, choice) - filters.keys() - weights.keys()
    return DesiredUnits(filters, weights, _balance(seen, policy), replaced)


def is_own(policy: PolicyContent) -> bool:
    """Whether we made the policy, or will."""
    return origin_of(policy.head.description) is not None


def _filters(seen: Seen, policy: PolicyContent, choice: UnitChoice) -> dict[str, int]:
    """Positions by unit: ours, the engine's next to them, and in our own all of the one that it is like."""
    wanted: dict[str, int] = {}
    for entry in seen.base.filters if is_own(policy) else ():
        if seen.name(entry.unit) not in units.MANDATORY:
            wanted[entry.unit] = entry.number
    for rule in _chosen(UnitKind.FILTER, choice):
        for twin in rule.twins:
            wanted.setdefault(usable_unit(seen, UnitKind.FILTER, twin, internal=True), 0)
        wanted[usable_unit(seen, UnitKind.FILTER, rule.name)] = 0
    return wanted


def _weights(seen: Seen, policy: PolicyContent, choice: UnitChoice) -> dict[str, int]:
    """Factors by unit: one that is there keeps its own, unless another is asked for.

    Ours comes in with the factor of the engine's weight next to it.
    """
    present, of_base = numbers(policy.weights), numbers(seen.base.weights)
    twins = units.weight_twins(seen.units)
    asked = _asked_factors(seen, choice, twins)
    settled = {**present, **asked}
    wanted = dict(of_base) if is_own(policy) else {}
    for rule in _chosen(UnitKind.WEIGHT, choice):
        own = usable_unit(seen, UnitKind.WEIGHT, rule.name)
        usual = 1
        if twin := twins.get(own):
            usual = settled.get(twin, of_base.get(twin, 1))
            wanted[twin] = usual
        wanted[own] = usual if rule.usual_factor is None else rule.usual_factor
    return {**{unit: settled.get(unit, factor) for unit, factor in wanted.items()}, **asked}


def _chosen(kind: UnitKind, choice: UnitChoice) -> tuple[Rule, ...]:
    return units.chosen_units(kind, placement_keys=choice.placement_keys, ha_admission=choice.ha_admission)


def _replaced(seen: Seen, policy: PolicyContent, choice: UnitChoice) -> frozenset[str]:
    """The units of admission control that are not the one asked for."""
    asked = units.ADMISSION_UNITS.get(choice.ha_admission) if choice.ha_admission is not None else None
    others = set(units.ADMISSION_UNITS.values()) - {asked} if asked is not None else set()
    own = units.attached(seen.units, policy.units)
    return frozenset(unit for unit in own if seen.name(unit) in others)


def _asked_factors(seen: Seen, choice: UnitChoice, twins: Mapping[str, str]) -> dict[str, int]:
    """Factors by unit; one that the policy lacks comes in, as after a change that was interrupted.

    What is asked for a weight of ours is meant for the engine's next to it, too, if nothing is asked for
    that.
    """
    by_name = {
        unit.name: unit_id
        for unit_id, unit in seen.units.items()
        if unit.type == UnitKind.WEIGHT and unit.enabled
    }
    for name in choice.factors:
        if name not in by_name:
            raise UserError(f"--factor {name}: no weight that the policy can have{nearest(name, by_name)}")
    asked = {by_name[name]: factor for name, factor in choice.factors.items()}
    return {**{twins[unit]: factor for unit, factor in asked.items() if unit in twins}, **asked}


def _balance(seen: Seen, policy: PolicyContent) -> str:
    """Ours, unless the policy, or the one that ours is like, balances by other ends: it holds one only."""
    own = usable_unit(seen, UnitKind.BALANCE, units.BALANCE.name)
    kept = seen.base.balances if is_own(policy) else policy.balances
    return next(
        (
            entry.unit
            for entry in kept
            if entry.unit != own and seen.name(entry.unit) not in units.BALANCE.twins
        ),
        own,
    )


# -- What the properties of the finished policy, and of clusters that use it, are to be.
@dataclass(frozen=True)
class ClusterProperties:
    """What becomes of the properties of a cluster that is to use the policy."""

    cluster: PolicyUser
    kept: Mapping[str, str]
    #: Those that no unit of the policy knows; the engine drops them.
    lost: Mapping[str, str]


def known_properties(seen: Seen, policy: PolicyContent, wanted: DesiredUnits) -> dict[str, str]:
    """Return the regular expression of each property that a unit of the finished policy knows."""
    gone = {entry.unit for entry in policy.balances if entry.unit != wanted.balance}
    mandatory = [i for i, unit in seen.units.items() if unit.name in units.MANDATORY]
    others = [unit for unit in (*policy.units, *wanted.filters, *wanted.weights) if unit not in gone]
    return {
        name: regex
        for unit in (*mandatory, *others, wanted.balance)
        if unit in seen.units
        for name, regex in seen.units[unit].properties.items()
    }


def desired_properties(
    seen: Seen, policy: PolicyContent, choice: UnitChoice, known: Mapping[str, str]
) -> dict[str, str]:
    """Return what is there and known, with what is asked for. Raises `UserError` for what is not known."""
    merged = {**(seen.base.head.properties if is_own(policy) else {}), **policy.head.properties}
    kept = {name: value for name, value in merged.items() if name in known}
    for name, value in choice.properties.items():
        if name not in known:
            raise UserError(f"--property {name}: no unit of the policy knows it{nearest(name, known)}")
        check_value(name, value, known[name], "--property")
    return {**kept, **choice.properties}


def cluster_properties(
    cluster: PolicyUser, properties: Mapping[str, str], choice: UnitChoice, known: Mapping[str, str]
) -> ClusterProperties:
    """Merge the policy's with the cluster's own. Raises `UserError` for a value that its unit refuses."""
    merged = {**properties, **cluster.properties, **choice.properties}
    kept = {name: value for name, value in merged.items() if name in known}
    for name, value in kept.items():
        check_value(name, value, known[name], f"cluster {cluster.name}")
    return ClusterProperties(
        cluster, kept, {name: merged[name] for name in sorted(merged.keys() - kept.keys())}
    )
