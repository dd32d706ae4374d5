"""What the finished policy is to hold: its filters, weights and balance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ovirt_placement.answers import policy_units as ours
from ovirt_placement.answers.setup.choice import Choice, Seen
from ovirt_placement.answers.setup.former import origin_of
from ovirt_placement.answers.setup.refusals import usable_unit
from ovirt_placement.engine.parsing.policies import Entry
from ovirt_placement.engine.writing.policies import PolicyContent
from ovirt_placement.rules.rule import UnitKind
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

#: More than all usual weights together can give in a cluster of 700 hosts.
_KEY_WEIGHT_FACTOR = 100_000


@dataclass(frozen=True)
class WantedUnits:
    #: Positions by unit.
    filters: Mapping[str, int]
    #: Factors by unit.
    weights: Mapping[str, int]
    balance: str
    #: The engine's weights in whose place ours stand.
    replaced: frozenset[str]


def wanted_units(seen: Seen, policy: PolicyContent, choice: Choice) -> WantedUnits:
    """Raise `UserError` for a unit that the engine lacks."""
    replaced = frozenset(
        unit for name in ours.WEIGHTS.values() if (unit := _engines_weight(seen, name)) is not None
    )
    return WantedUnits(
        _filters(seen, policy, choice),
        _weights(seen, policy, choice, replaced),
        _balance(seen, policy),
        replaced,
    )


def is_own(policy: PolicyContent) -> bool:
    """Whether we made the policy, or will."""
    return origin_of(policy.head.description) is not None


def numbers(entries: Sequence[Entry]) -> dict[str, int]:
    return {entry.unit: entry.number for entry in entries}


def _filters(seen: Seen, policy: PolicyContent, choice: Choice) -> dict[str, int]:
    """Positions by unit: ours, the engine's beside them, and in our own all of the one that it is like."""
    wanted: dict[str, int] = {}
    for entry in seen.base.filters if is_own(policy) else ():
        if seen.name(entry.unit) not in ours.MANDATORY:
            wanted[entry.unit] = entry.number
    for name, beside in ours.FILTERS.items():
        wanted.setdefault(usable_unit(seen, UnitKind.FILTER, beside, internal=True), 0)
        wanted[usable_unit(seen, UnitKind.FILTER, name)] = 0
    if choice.placement_keys:
        wanted[usable_unit(seen, UnitKind.FILTER, ours.KEY_FILTER)] = 0
    return wanted


def _weights(seen: Seen, policy: PolicyContent, choice: Choice, replaced: frozenset[str]) -> dict[str, int]:
    """Factors by unit: one that is there keeps its own, unless another is asked for."""
    present, of_base = numbers(policy.weights), numbers(seen.base.weights)
    wanted = {unit: factor for unit, factor in of_base.items() if is_own(policy) and unit not in replaced}
    names = [*ours.WEIGHTS, *([ours.KEY_WEIGHT] if choice.placement_keys else [])]
    for name in names:
        engines = _engines_weight(seen, ours.WEIGHTS.get(name, "")) or ""
        usual = _KEY_WEIGHT_FACTOR if name == ours.KEY_WEIGHT else of_base.get(engines, 1)
        wanted[usable_unit(seen, UnitKind.WEIGHT, name)] = present.get(engines, usual)
    wanted = {unit: present.get(unit, factor) for unit, factor in wanted.items()}
    return {**wanted, **_asked_factors(seen, choice, replaced)}


def _asked_factors(seen: Seen, choice: Choice, replaced: frozenset[str]) -> dict[str, int]:
    """Factors by unit; one that the policy lacks comes in, as after a change that was interrupted."""
    by_name = {
        unit.name: unit_id
        for unit_id, unit in seen.units.items()
        if unit.type == UnitKind.WEIGHT and unit.enabled and unit_id not in replaced
    }
    for name in choice.factors:
        if name not in by_name:
            instead = next((own for own, engines in ours.WEIGHTS.items() if engines == name), None)
            hint = f"; ours in its place is {instead}" if instead else nearest(name, by_name)
            raise UserError(f"--factor {name}: no weight that the policy can have{hint}")
    return {by_name[name]: factor for name, factor in choice.factors.items()}


def _engines_weight(seen: Seen, name: str) -> str | None:
    return ours.unit_id(seen.units, UnitKind.WEIGHT, name, internal=True)


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
