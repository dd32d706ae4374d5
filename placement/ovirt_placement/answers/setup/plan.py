"""What a policy is to hold, what the engine would refuse of it, and the requests that lead there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import msgspec

from ovirt_placement.answers.setup import (
    ADMISSION_UNITS,
    BALANCE,
    KEY_FILTER,
    KEY_WEIGHT,
    MANDATORY,
    SetupPlan,
    Units,
    assign,
    attached,
    check_unspoilt,
    create,
    describe,
    known_properties,
    lead_to,
    left_of,
    parameters_away,
    twins,
    unit_id,
    unit_name,
    weight_twins,
    with_properties,
)
from ovirt_placement.answers.setup.previous import (
    BASE,
    BASE_ID,
    Former,
    FormerCluster,
    FormerUnits,
    Overview,
    made_like,
    origin_of,
    read_policy,
    remembered,
    with_all_back,
    with_former,
    with_returned,
)
from ovirt_placement.engine import policies
from ovirt_placement.engine.clusters import PolicyUser
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.policies import NEW, PolicyContent, PolicyHead, policy_of
from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError


@dataclass(frozen=True)
class UnitChoice:
    """What the administrator asks for."""

    policy: str
    factors: Mapping[str, int] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    placement_keys: bool = False
    #: A word of `ADMISSION_UNITS`.
    ha_admission: str | None = None


@dataclass(frozen=True)
class Seen:
    """What setup begins with."""

    overview: Overview
    #: The engine's own policy that ours is made like: usually `none`.
    base: PolicyContent
    #: The policy before any unit is added: as it is, or as it is to be made.
    policy: PolicyContent
    #: The clusters that are to use it.
    clusters: tuple[PolicyUser, ...]


def read_seen(
    connection: EngineConnection,
    overview: Overview,
    policy: str,
    clusters: Iterable[PolicyUser],
    origin: str = BASE,
) -> Seen:
    """Read a policy that is to have our units, and the one that it is like: `origin`, if it must be made."""
    found = read_policy(connection, overview, policy)
    name = origin if found is None else origin_of(found.head.description) or BASE
    by_id = (head for head in overview.heads if name == BASE and head.id == BASE_ID)
    base = next(by_id, None) or overview.named(name)
    if base is None:
        raise UserError(
            f"the engine has no policy {name} to begin with: is it an oVirt engine of 4.0 or later?"
        )
    made = PolicyHead(id=NEW, name=policy, description=made_like(name), locked=False, properties={})
    return Seen(
        overview,
        base=policies.read_content(connection, base),
        policy=found or PolicyContent(made, filters={}, weights={}, balances={}),
        clusters=tuple(clusters),
    )


def plan(seen: Seen, choice: UnitChoice) -> SetupPlan:
    """Plan the requests, in order. Raises `UserError` for what the engine lacks or would refuse."""
    policy, units = seen.policy, seen.overview.units
    if policy.head.locked:
        raise UserError(
            f"the policy {policy.head.name} is the engine's own and locked: choose another name by --policy"
        )
    check_unspoilt(units, policy)
    whole = with_returned(policy)
    after = _complete(seen, whole, choice)
    known = known_properties(units, after.units)
    changes = [_let_use(cluster, after, choice, known) for cluster in seen.clusters]
    away = parameters_away(units, policy, after)
    description = _description(seen, whole, after, changes, away)
    # What was before is remembered before anything else.
    first = (
        [create(policy.head.name, description)]
        if policy.head.id == NEW
        else describe(policy, description, "remember in the policy's description what was before")
    )
    back = "forget in the policy's description the properties that are back"
    all_back = with_all_back(description)
    requests = (
        *first,
        *lead_to(units, policy, after),
        *describe(policy, all_back, back, description),
        *(
            assign(
                one.before,
                policy.head.id,
                choice.properties,
                f"let the cluster {one.after.name} use the policy",
            )
            for one in changes
            if one.before != one.after
        ),
    )
    using = (user.id for user in seen.overview.users if user.policy == policy.head.id)
    (balance,) = after.balances
    return SetupPlan(
        requests,
        tuple(_notes(units, balance, changes)),
        after=replace(after, head=replace(after.head, description=all_back)),
        users=tuple(one.after for one in changes),
        policy=policy_of(units, after.filters, after.weights, balance),
        clusters=tuple(dict.fromkeys((*(one.after.id for one in changes), *using))),
    )


def _notes(units: Units, balance: str, changes: list[ClusterChange]) -> Iterator[str]:
    if balance != unit_id(units, UnitKind.BALANCE, BALANCE.name):
        kept = unit_name(units, balance)
        yield f"the policy keeps its balance {kept}; {BALANCE.name} would have to take its place"
    for one in changes:
        for name, value in one.lost.items():
            lost = f"its property {name}={value}"
            yield f"cluster {one.after.name} loses {lost}: no unit of the policy knows it"


def is_own(policy: PolicyContent) -> bool:
    """Whether we made the policy, or will."""
    return origin_of(policy.head.description) is not None


# -- What the engine lacks or would refuse, said before anything is sent.
def _usable(units: Units, kind: UnitKind, name: str, *, internal: bool = False) -> str:
    """Find the id of a unit that the policy must have."""
    found = unit_id(units, kind, name, internal=internal)
    if found is None:
        raise UserError(
            f"the engine has no {kind.replace('_', ' ')} unit {name}: it asks the proxy for its units"
            " only when it starts; `ovirt-placement doctor` says what to do"
        )
    if not units[found].enabled:
        raise UserError(
            f"the engine has disabled {name}: the proxy did not offer it when the engine started;"
            " `ovirt-placement doctor` says what to do"
        )
    return found


def _check_value(name: str, value: str, regex: str, where: str) -> None:
    try:
        fits = re.fullmatch(regex, value) is not None
    except re.error:
        return  # an expression of Java's that is none of Python's: the engine will judge
    if not fits:
        raise UserError(
            f"{where}: {name}={value} does not match {regex}: give a value by --property {name}=..."
        )


# -- What the finished policy is to hold.
def _complete(seen: Seen, policy: PolicyContent, choice: UnitChoice) -> PolicyContent:
    """The policy with our units and those of the engine next to them; one of ours has all of its origin's."""
    units = seen.overview.units
    filters, weights = _filters(seen, policy, choice), _weights(seen, policy, choice)
    gone = _replaced(units, policy, choice) - filters.keys() - weights.keys()
    balance = _balance(seen, policy)
    after = PolicyContent(
        policy.head,
        left_of({**filters, **policy.filters}, gone),
        left_of({**weights, **policy.weights, **weights}, gone),
        {balance: 1},
    )
    known = known_properties(units, after.units)
    merged = {**(seen.base.head.properties if is_own(policy) else {}), **policy.head.properties}
    for name, value in choice.properties.items():
        if name not in known:
            raise UserError(f"--property {name}: no unit of the policy knows it{nearest(name, known)}")
        _check_value(name, value, known[name], "--property")
    kept = {name: value for name, value in merged.items() if name in known}
    return with_properties(after, {**kept, **choice.properties})


def _filters(seen: Seen, policy: PolicyContent, choice: UnitChoice) -> dict[str, int]:
    """Positions by unit: ours, the engine's next to them, and in our own all of the one that it is like."""
    units = seen.overview.units
    wanted: dict[str, int] = {}
    for unit, position in seen.base.filters.items() if is_own(policy) else ():
        if unit_name(units, unit) not in MANDATORY:
            wanted[unit] = position
    for rule in _chosen(UnitKind.FILTER, choice):
        for twin in rule.twins:
            wanted.setdefault(_usable(units, UnitKind.FILTER, twin, internal=True), 0)
        wanted[_usable(units, UnitKind.FILTER, rule.name)] = 0
    return wanted


def _weights(seen: Seen, policy: PolicyContent, choice: UnitChoice) -> dict[str, int]:
    """Factors by unit: one that is there keeps its own, unless another is asked for.

    Ours comes in with the factor of the engine's weight next to it.
    """
    units = seen.overview.units
    of_base, alongside = seen.base.weights, weight_twins(units)
    asked = _asked_factors(units, choice, alongside)
    settled = {**policy.weights, **asked}
    wanted = dict(of_base) if is_own(policy) else {}
    for rule in _chosen(UnitKind.WEIGHT, choice):
        own = _usable(units, UnitKind.WEIGHT, rule.name)
        usual = 1
        if twin := alongside.get(own):
            usual = settled.get(twin, of_base.get(twin, 1))
            wanted[twin] = usual
        wanted[own] = usual if rule.usual_factor is None else rule.usual_factor
    return {**{unit: settled.get(unit, factor) for unit, factor in wanted.items()}, **asked}


def _chosen(kind: UnitKind, choice: UnitChoice) -> Iterator[Rule]:
    """Our units of a kind that the policy is to have: the usual ones, and those that are asked for."""
    asked = {KEY_FILTER, KEY_WEIGHT} if choice.placement_keys else set()
    if choice.ha_admission is not None:
        asked.add(ADMISSION_UNITS[choice.ha_admission])
    return (
        rule for rule in UNITS.values() if rule.kind is kind and (not rule.on_request or rule.name in asked)
    )


def _replaced(units: Units, policy: PolicyContent, choice: UnitChoice) -> set[str]:
    """The units of admission control that are not the one asked for."""
    if choice.ha_admission is None:
        return set()
    others = {*ADMISSION_UNITS.values()} - {ADMISSION_UNITS[choice.ha_admission]}
    return {unit for unit in attached(units, policy.units) if units[unit].name in others}


def _asked_factors(units: Units, choice: UnitChoice, alongside: Mapping[str, str]) -> dict[str, int]:
    """Factors by unit; one that the policy lacks comes in, as after a change that was interrupted.

    What is asked for a weight of ours is meant for the engine's next to it, too, if nothing is asked for
    that.
    """
    by_name = {unit.name: i for i, unit in units.items() if unit.type == UnitKind.WEIGHT and unit.enabled}
    for name in choice.factors:
        if name not in by_name:
            raise UserError(f"--factor {name}: no weight that the policy can have{nearest(name, by_name)}")
    asked = {by_name[name]: factor for name, factor in choice.factors.items()}
    return {**{alongside[unit]: factor for unit, factor in asked.items() if unit in alongside}, **asked}


def _balance(seen: Seen, policy: PolicyContent) -> str:
    """Ours, unless the policy, or the one that ours is like, balances by other ends: it holds one only."""
    own = _usable(seen.overview.units, UnitKind.BALANCE, BALANCE.name)
    held = seen.base.balances if is_own(policy) else policy.balances
    others = (unit for unit in held if unit_name(seen.overview.units, unit) not in BALANCE.twins)
    return next(others, own)


# -- What becomes of the clusters that are to use the policy.
@dataclass(frozen=True)
class ClusterChange:
    before: PolicyUser
    after: PolicyUser
    #: Properties that no unit of the policy knows; the engine drops them.
    lost: Mapping[str, str]


def _let_use(
    cluster: PolicyUser, policy: PolicyContent, choice: UnitChoice, known: Mapping[str, str]
) -> ClusterChange:
    """Merge the policy's properties with its own. Raises `UserError` for a value that its unit refuses."""
    merged = {**policy.head.properties, **cluster.properties, **choice.properties}
    kept = {name: value for name, value in merged.items() if name in known}
    for name, value in kept.items():
        _check_value(name, value, known[name], f"cluster {cluster.name}")
    lost = {name: merged[name] for name in sorted(merged.keys() - kept.keys())}
    return ClusterChange(cluster, replace(cluster, policy=policy.head.id, properties=kept), lost)


# -- What is remembered of all that was before. An interruption leaves it as it is.
def _description(
    seen: Seen,
    policy: PolicyContent,
    after: PolicyContent,
    changes: list[ClusterChange],
    away: Mapping[str, str],
) -> str:
    before = remembered(policy.head.description)
    units = before.units
    if units is None and not is_own(policy):
        units = _former_units(seen.overview.units, policy, after)
    if units is not None:
        changed = _changed_factors(seen.overview.units, policy, after)
        changed = {name: factor for name, factor in changed.items() if name in units.weights}
        units = msgspec.structs.replace(units, factors={**changed, **units.factors})
    clusters = dict(before.clusters)
    for one in changes:
        cluster = one.before
        if cluster.policy == policy.head.id:
            continue
        if is_own(policy) and cluster.policy == seen.base.head.id and not one.lost:
            clusters.pop(cluster.id, None)
        else:
            clusters[cluster.id] = FormerCluster(cluster.policy, dict(one.lost))
    return with_former(policy.head.description, Former(units, clusters, {**before.away, **away}))


def _former_units(units: Units, policy: PolicyContent, after: PolicyContent) -> FormerUnits | None:
    """None if it has units of ours, and nothing of it goes: which of the engine's it had is not known."""
    balances = [unit for unit in policy.balances if unit not in after.units]
    lost = {n: value for n, value in policy.head.properties.items() if n not in after.head.properties}
    if attached(units, policy.units) and not balances and not lost:
        return None
    filters = {unit_name(units, unit) for unit in policy.filters}
    weights = {unit_name(units, unit) for unit in policy.weights}
    return FormerUnits(
        filters=tuple(sorted(filters & {*twins(UnitKind.FILTER).values()})),
        weights=tuple(sorted(weights & {*twins(UnitKind.WEIGHT).values()})),
        balance=unit_name(units, balances[0]) if balances else None,
        properties=lost,
    )


def _changed_factors(units: Units, policy: PolicyContent, after: PolicyContent) -> dict[str, int]:
    """The factors by name that weights have before they change."""
    factors = after.weights
    return {
        unit_name(units, unit): factor
        for unit, factor in policy.weights.items()
        if factors.get(unit, factor) != factor
    }
