"""What a policy is to hold, what the engine would refuse of it, and the requests that lead there."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec

from ovirt_placement.answers import setup
from ovirt_placement.answers.setup import previous
from ovirt_placement.engine import policies
from ovirt_placement.engine.clusters import PolicyUser
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.policies import NEW, PolicyContent, PolicyHead, policy_of
from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

_REMEMBERING = "remember in the policy's description what was before"
_BACK = "forget in the policy's description the properties that are back"


def plan(connection: EngineConnection, overview: setup.Overview, target: setup.Target) -> setup.SetupPlan:
    """Plan the requests, in order. Raises `UserError` for what the engine lacks or would refuse."""
    found = setup.read_policy(connection, overview, target.policy)
    name = target.origin if found is None else previous.origin_of(found.head.description) or setup.BASE
    origin = overview.named(name)
    if origin is None:
        raise UserError(
            f"the engine has no policy {name} to begin with: is it an oVirt engine of 4.0 or later?"
        )
    base = policies.read_content(connection, origin)
    if found is None:
        found = PolicyContent(PolicyHead(NEW, target.policy, previous.made_like(name), False, {}), {}, {}, {})
    elif found.head.locked:
        raise UserError(
            f"the policy {target.policy} is the engine's own and locked: choose another name by --policy"
        )
    setup.check_unspoilt(overview.units, found)
    return _Planning(overview, base, found, target).plan()


@dataclass(frozen=True)
class _ClusterChange:
    before: PolicyUser
    after: PolicyUser
    #: Properties that no unit of the policy knows; the engine drops them.
    lost: Mapping[str, str]


class _Planning:
    """One policy on its way to what it is to hold, with the clusters that are to use it."""

    def __init__(
        self, overview: setup.Overview, base: PolicyContent, policy: PolicyContent, target: setup.Target
    ) -> None:
        #: The engine's own policy that ours is made like is the base; the policy stands before any unit is
        #: added: as it is, or as it is to be made.
        self._overview, self._base, self._before, self._target = overview, base, policy, target
        self._units = overview.units
        #: With the parameters that an interrupted run has put aside.
        self._policy = previous.with_returned(policy)
        #: Whether we made the policy, or will: then it has all of its origin's units.
        self._own = previous.origin_of(self._policy.head.description) is not None

    def plan(self) -> setup.SetupPlan:
        before, after, units = self._before, self._after, self._units
        users = (user for user in self._overview.users if user.id in self._target.clusters)
        changes = [self._let_use(user) for user in users]
        away = setup.parameters_away(units, before, after)
        description = self._description(changes, away)
        all_back = previous.with_former(
            description, msgspec.structs.replace(previous.remembered(description), away={})
        )
        requests = (
            # What was before is remembered before anything else.
            *(
                [setup.create(before.head.name, description)]
                if before.head.id == NEW
                else setup.describe(before, description, _REMEMBERING)
            ),
            *setup.lead_to(units, before, after),
            *setup.describe(before, all_back, _BACK, description),
            *(
                setup.assign(
                    change.before,
                    before.head.id,
                    self._target.properties,
                    f"let the cluster {change.after.name} use the policy",
                )
                for change in changes
                if change.before != change.after
            ),
        )
        using = (user.id for user in self._overview.users if user.policy == before.head.id)
        (balance,) = after.balances
        return setup.SetupPlan(
            requests,
            tuple(self._notes(balance, changes)),
            after=replace(after, head=replace(after.head, description=all_back)),
            users=tuple(one.after for one in changes),
            policy=policy_of(units, after.filters, after.weights, balance),
            clusters=tuple(dict.fromkeys((*(one.after.id for one in changes), *using))),
        )

    def _notes(self, balance: str, changes: Iterable[_ClusterChange]) -> Iterator[str]:
        if balance != self._units.id_of(UnitKind.BALANCE, setup.BALANCE.name):
            kept = self._units.name_of(balance)
            yield f"the policy keeps its balance {kept}; {setup.BALANCE.name} would have to take its place"
        for change in changes:
            for name, value in change.lost.items():
                lost = f"its property {name}={value}"
                yield f"cluster {change.after.name} loses {lost}: no unit of the policy knows it"

    # -- What the finished policy is to hold, and what the engine lacks or would refuse of it.
    @cached_property
    def _after(self) -> PolicyContent:
        policy, properties = self._policy, self._target.properties
        filters, weights = self._filters(), self._weights()
        gone = self._replaced() - filters.keys() - weights.keys()
        after = PolicyContent(
            policy.head,
            setup.left_of({**filters, **policy.filters}, gone),
            setup.left_of({**weights, **policy.weights, **weights}, gone),
            {self._balance(): 1},
        )
        known = self._units.properties(after.units)
        for name, value in properties.items():
            if name not in known:
                raise UserError(f"--property {name}: no unit of the policy knows it{nearest(name, known)}")
            _check_value(name, value, known[name], "--property")
        merged = {**(self._base.head.properties if self._own else {}), **policy.head.properties}
        kept = {name: value for name, value in merged.items() if name in known}
        return setup.with_properties(after, {**kept, **properties})

    def _usable(self, kind: UnitKind, name: str, *, internal: bool = False) -> str:
        found = self._units.id_of(kind, name, internal=internal)
        if found is None:
            raise UserError(
                f"the engine has no {kind.replace('_', ' ')} unit {name}: it asks the proxy for its units"
                " only when it starts; `ovirt-placement doctor` says what to do"
            )
        if not self._units[found].enabled:
            raise UserError(
                f"the engine has disabled {name}: the proxy did not offer it when the engine started;"
                " `ovirt-placement doctor` says what to do"
            )
        return found

    def _chosen(self, kind: UnitKind) -> Iterator[Rule]:
        """Our units of a kind that the policy is to have: the usual ones, and those that are asked for."""
        asked = {setup.KEY_FILTER, setup.KEY_WEIGHT} if self._target.placement_keys else set()
        if self._target.ha_admission is not None:
            asked.add(setup.ADMISSION_UNITS[self._target.ha_admission])
        every = (rule for rule in UNITS.values() if rule.kind is kind)
        return (rule for rule in every if not rule.on_request or rule.name in asked)

    def _filters(self) -> dict[str, int]:
        """Positions by unit: ours, the engine's next to them, and in our own all of its origin's."""
        of_base = self._base.filters.items() if self._own else ()
        wanted = {unit: at for unit, at in of_base if self._units.name_of(unit) not in setup.MANDATORY}
        for rule in self._chosen(UnitKind.FILTER):
            for twin in rule.twins:
                wanted.setdefault(self._usable(UnitKind.FILTER, twin, internal=True), 0)
            wanted[self._usable(UnitKind.FILTER, rule.name)] = 0
        return wanted

    def _weights(self) -> dict[str, int]:
        """Factors by unit: as asked, as they are, or as that of the engine's weight next to it."""
        of_base, alongside = self._base.weights, self._units.weight_twins()
        asked = self._asked_factors(alongside)
        settled = {**self._policy.weights, **asked}
        wanted = dict(of_base) if self._own else {}
        for rule in self._chosen(UnitKind.WEIGHT):
            own = self._usable(UnitKind.WEIGHT, rule.name)
            usual = 1
            if twin := alongside.get(own):
                usual = settled.get(twin, of_base.get(twin, 1))
                wanted[twin] = usual
            wanted[own] = usual if rule.usual_factor is None else rule.usual_factor
        return {**{unit: settled.get(unit, factor) for unit, factor in wanted.items()}, **asked}

    def _asked_factors(self, alongside: Mapping[str, str]) -> dict[str, int]:
        """By unit, and for the engine's weight next to it, too, if nothing is asked for that."""
        weights = (one for one in self._units.items() if one[1].type == UnitKind.WEIGHT and one[1].enabled)
        by_name = {unit.name: i for i, unit in weights}
        for name in self._target.factors:
            if name not in by_name:
                raise UserError(
                    f"--factor {name}: no weight that the policy can have{nearest(name, by_name)}"
                )
        asked = {by_name[name]: factor for name, factor in self._target.factors.items()}
        return {**{alongside[unit]: factor for unit, factor in asked.items() if unit in alongside}, **asked}

    def _replaced(self) -> set[str]:
        """The units of admission control that are not the one asked for."""
        if self._target.ha_admission is None:
            return set()
        others = {*setup.ADMISSION_UNITS.values()} - {setup.ADMISSION_UNITS[self._target.ha_admission]}
        return {one for one in self._units.ours(self._policy.units) if self._units[one].name in others}

    def _balance(self) -> str:
        """Ours, unless the policy, or the origin of ours, balances by other ends: it holds one only."""
        own = self._usable(UnitKind.BALANCE, setup.BALANCE.name)
        held = self._base.balances if self._own else self._policy.balances
        return next((unit for unit in held if self._units.name_of(unit) not in setup.BALANCE.twins), own)

    def _let_use(self, cluster: PolicyUser) -> _ClusterChange:
        """With its own properties over the policy's. Raises `UserError` for a value that a unit refuses."""
        head, known = self._after.head, self._units.properties(self._after.units)
        merged = {**head.properties, **cluster.properties, **self._target.properties}
        kept = {name: value for name, value in merged.items() if name in known}
        for name, value in kept.items():
            _check_value(name, value, known[name], f"cluster {cluster.name}")
        lost = {name: merged[name] for name in sorted(merged.keys() - kept.keys())}
        return _ClusterChange(cluster, replace(cluster, policy=head.id, properties=kept), lost)

    # -- What is remembered of all that was before. An interruption leaves it as it is.
    def _description(self, changes: Iterable[_ClusterChange], away: Mapping[str, str]) -> str:
        head = self._policy.head
        before = previous.remembered(head.description)
        units = before.units
        if units is None and not self._own:
            units = self._former_units()
        if units is not None:
            units = msgspec.structs.replace(
                units,
                factors={**self._former_factors(units.weights), **units.factors},
                properties={
                    **self._former_properties(head.properties, self._after.head.properties),
                    **units.properties,
                },
            )
        clusters = dict(before.clusters)
        for change in changes:
            cluster = change.before
            changed = self._former_properties(cluster.properties, change.after.properties)
            former = {name: value for name, value in changed.items() if value is not None}
            since = previous.properties_since(self._overview, cluster, head.id)
            if since is not None:
                entry = clusters.get(cluster.id, previous.FormerCluster())
                properties = {**former, **since, **entry.properties}
                entry = msgspec.structs.replace(entry, properties=properties)
            elif self._own and cluster.policy == self._base.head.id and not former:
                entry = previous.FormerCluster()
            else:
                entry = previous.FormerCluster(cluster.policy, former)
            clusters[cluster.id] = entry
        clusters = {one: entry for one, entry in clusters.items() if entry != previous.FormerCluster()}
        return previous.with_former(
            head.description, previous.Former(units, clusters, {**before.away, **away})
        )

    def _former_factors(self, had: Collection[str]) -> dict[str, int | None]:
        """Of weights that change, by name; those that come because ours do, are not among what it `had`."""
        before, after, units = self._policy.weights, self._after.weights, self._units
        always_come = {*units.ours(after), *units.weight_twins().values()}
        return {
            units.name_of(unit): before.get(unit)
            for unit, factor in after.items()
            if before.get(unit) != factor and (units.name_of(unit) in had or unit not in always_come)
        }

    def _former_properties(
        self, before: Mapping[str, str], after: Mapping[str, str]
    ) -> dict[str, str | None]:
        """Of those that change; the parameters of our units go with these."""
        lasting = {*self._after.units} - self._units.ours(self._after.units)
        known = self._units.properties(lasting)
        names = (name for name in {**before, **after} if name in known or name not in after)
        return {name: before.get(name) for name in names if before.get(name) != after.get(name)}

    def _former_units(self) -> previous.FormerUnits | None:
        """None if it has units of ours, and nothing of it goes: which of the engine's it had is not known."""
        policy, after, units = self._policy, self._after, self._units
        balances = [unit for unit in policy.balances if unit not in after.units]
        lost = {n: value for n, value in policy.head.properties.items() if n not in after.head.properties}
        if units.ours(policy.units) and not balances and not lost:
            return None
        filters = {*map(units.name_of, policy.filters)}
        weights = {*map(units.name_of, policy.weights)}
        return previous.FormerUnits(
            filters=tuple(sorted(filters & {*setup.twins(UnitKind.FILTER).values()})),
            weights=tuple(sorted(weights & {*setup.twins(UnitKind.WEIGHT).values()})),
            balance=units.name_of(balances[0]) if balances else None,
        )


def _check_value(name: str, value: str, regex: str, where: str) -> None:
    try:
        fits = re.fullmatch(regex, value) is not None
    except re.error:
        return  # an expression of Java's that is none of Python's: the engine will judge
    if not fits:
        raise UserError(
            f"{where}: {name}={value} does not match {regex}: give a value by --property {name}=..."
        )
