"""The requests that take our units out of a policy again, and give clusters back what they had."""

from collections.abc import Iterator
from dataclasses import replace

import msgspec

from ovirt_placement.answers.setup import (
    Units,
    assign,
    attached,
    describe,
    entries,
    known_properties,
    lead_to,
    numbers,
    parameters_away,
    remove,
    twins,
    unit_id,
    weight_twins,
    with_properties,
)
from ovirt_placement.answers.setup.plan import SetupPlan, check_unspoilt
from ovirt_placement.answers.setup.previous import (
    NOTHING,
    FormerUnits,
    Overview,
    forgotten,
    origin_of,
    remembered,
    restore_policies,
    with_former,
    with_returned,
)
from ovirt_placement.engine.policies import Entry, PolicyContent, PolicyUser
from ovirt_placement.rules.elements.rule import UnitKind

#: The engine's balance that does nothing. A policy without any stops the load balancing of all clusters.
_NO_BALANCE = "None"

_UNKNOWN = (
    "it is not recorded which of the engine's units the policy had before ours: those next to ours stay,"
    " and the balance is None"
)
_REMEMBERING = "remember in the policy's description the properties that go meanwhile"
_FORGETTING = "forget in the policy's description what was before"


def undo(overview: Overview, policy: PolicyContent, going: frozenset[str] = frozenset()) -> SetupPlan:
    """Plan the requests, in order; none if setup has left no trace in the policy.

    `going` are ids of policies that are removed in the same run. Raises `UserError` for what the engine would
    refuse.
    """
    head, units = policy.head, overview.units
    if origin_of(head.description) is not None:
        returned = restore_policies(overview, head, going | {head.id}, all_users=True)
        return SetupPlan((*(request for _, request in returned), remove(policy)), ())
    former = remembered(head.description)
    own = attached(units, policy.units)
    if not own and former == NOTHING:
        return SetupPlan((), (), policy)
    check_unspoilt(units, policy)
    after = _without_ours(units, with_returned(policy), own, former.units)
    away = parameters_away(units, policy, after)
    meanwhile = head.description
    if away:
        meanwhile = with_former(meanwhile, msgspec.structs.replace(former, away={**former.away, **away}))
    restored = tuple(restore_policies(overview, head, going, all_users=False))
    dropping = tuple(_dropping(overview, policy, after))
    description = forgotten(head.description)
    requests = (
        *(request for _, request in restored),
        *describe(policy, meanwhile, _REMEMBERING),
        *lead_to(units, policy, after),
        *(
            assign(user, head.id, {}, f"let the cluster {user.name} drop the parameters {', '.join(names)}")
            for user, names in dropping
        ),
        # At last: until then an interrupted run must know what to do.
        *describe(policy, description, _FORGETTING, meanwhile),
    )
    return SetupPlan(
        requests,
        (_UNKNOWN,) if own and former.units is None else (),
        after=replace(after, head=replace(after.head, description=description)),
        users=(
            *(user for user, _ in restored),
            *(
                replace(user, properties={n: v for n, v in user.properties.items() if n not in names})
                for user, names in dropping
            ),
        ),
    )


def _without_ours(
    units: Units, policy: PolicyContent, own: set[str], former: FormerUnits | None
) -> PolicyContent:
    """The policy with what it had; where that is not known, the engine's units next to ours stay."""
    gone, back = set(own), dict[str, int]()
    if former is not None:
        for name in {*twins(UnitKind.FILTER).values()}.difference(former.filters):
            gone.add(unit_id(units, UnitKind.FILTER, name, internal=True) or "")
        for unit in weight_twins(units).values():
            if units[unit].name not in former.weights:
                gone.add(unit)
            elif units[unit].name in former.factors:
                back[unit] = former.factors[units[unit].name]
    before = former or FormerUnits()
    balances = policy.balances
    if own & set(numbers(balances)):
        known = (before.balance or _NO_BALANCE, _NO_BALANCE)
        found = (unit_id(units, UnitKind.BALANCE, name, internal=True) for name in known)
        balances = tuple(Entry(unit, 1) for unit in found if unit is not None)[:1] or balances
    after = PolicyContent(
        policy.head,
        entries(numbers(policy.filters), gone),
        entries({**back, **numbers(policy.weights), **back}, gone),
        balances,
    )
    properties = {**before.properties, **policy.head.properties}
    known_now = known_properties(units, after.units)
    return with_properties(after, {name: value for name, value in properties.items() if name in known_now})


def _dropping(
    overview: Overview, policy: PolicyContent, after: PolicyContent
) -> Iterator[tuple[PolicyUser, list[str]]]:
    """The engine drops parameters that no unit knows when a cluster is changed, whatever is changed.

    Clusters that get another policy are changed by that.
    """
    others = remembered(policy.head.description).clusters
    unknown = known_properties(overview.units, policy.units).keys() - known_properties(
        overview.units, after.units
    )
    for user in overview.users:
        names = sorted(unknown & user.properties.keys())
        if names and user.policy == policy.head.id and user.id not in others:
            yield user, names
