"""What the finished policy is to hold: its filters, weights and balance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ovirt_placement.answers import policy_units as ours
from ovirt_placement.answers.setup.choice import Seen, UnitChoice
from ovirt_placement.answers.setup.former import origin_of
from ovirt_placement.answers.setup.refusals import usable_unit
from ovirt_placement.engine.parsing.policies import Entry
from ovirt_placement.engine.writing.policies import PolicyContent
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError


@dataclass(frozen=True)
class WantedUnits:
    #: Positions by unit.
    filters: Mapping[str, int]
    #: Factors by unit.
    weights: Mapping[str, int]
    balance: str
    #: Ours that others take the place of.
    replaced: frozenset[str] = frozenset()


def wanted_units(seen: Seen, policy: PolicyContent, choice: UnitChoice) -> WantedUnits:
    """Raise `UserError` for a unit that the engine lacks."""
    filters, weights = _filters(seen, policy, choice), _weights(seen, policy, choice)
    replaced = _replaced(seen, policy, choice) - filters.keys() - weights.keys()
    return WantedUnits(filters, weights, _balance(seen, policy), replaced)


def is_own(policy: PolicyContent) -> bool:
    """Whether we made the policy, or will."""
    return origin_of(policy.head.description) is not None


def numbers(entries: Sequence[Entry]) -> dict[str, int]:
    return {entry.unit: entry.number for entry in entries}


def _filters(seen: Seen, policy: PolicyContent, choice: UnitChoice) -> dict[str, int]:
    """Positions by unit: ours, the engine's next to them, and in our own all of the one that it is like."""
    wanted: dict[str, int] = {}
    for entry in seen.base.filters if is_own(policy) else ():
        if seen.name(entry.unit) not in ours.MANDATORY:
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
    twins = ours.weight_twins(seen.units)
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
    return ours.chosen_units(kind, placement_keys=choice.placement_keys, ha_admission=choice.ha_admission)


def _replaced(seen: Seen, policy: PolicyContent, choice: UnitChoice) -> frozenset[str]:
    """The units of admission control that are not the one asked for."""
    asked = ours.ADMISSION_UNITS.get(choice.ha_admission) if choice.ha_admission is not None else None
    others = set(ours.ADMISSION_UNITS.values()) - {asked} if asked is not None else set()
    own = ours.attached(seen.units, policy.units)
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
    own = usable_unit(seen, UnitKind.BALANCE, ours.BALANCE.name)
    kept = seen.base.balances if is_own(policy) else policy.balances
    return next(
        (
            entry.unit
            for entry in kept
            if entry.unit != own and seen.name(entry.unit) not in ours.BALANCE.twins
        ),
        own,
    )
