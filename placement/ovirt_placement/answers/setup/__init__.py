"""What the engine has of policies and units, and the requests that lead a policy to what it is to hold."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from lxml.builder import E  # type: ignore[import-not-found]  # the stubs lack it
from lxml.etree import tostring

from ovirt_placement.engine import policies
from ovirt_placement.engine.clusters import PolicyUser
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.policies import (
    ENTRIES,
    Entries,
    Policy,
    PolicyContent,
    PolicyHead,
    PolicyRequest,
    PolicyUnit,
)
from ovirt_placement.rules.catalogue import UNITS
from ovirt_placement.rules.elements.rule import Rule, UnitKind
from ovirt_placement.rules.failover import admission
from ovirt_placement.rules.placement_keys import units as placement_keys
from ovirt_service.errors import UserError

#: Our balance; a policy has only one. It also does for the engine's that are its twins.
(BALANCE,) = (rule for rule in UNITS.values() if rule.kind is UnitKind.BALANCE)
#: For who places by keys.
KEY_FILTER, KEY_WEIGHT = placement_keys.KEY_FILTER.name, placement_keys.KEY_WEIGHT.name
#: Of admission control: a start that the HA reservation would not survive is refused, or the last choice.
ADMISSION_UNITS = {"hard": admission.FILTER.name, "soft": admission.WEIGHT.name}

#: Filters that the engine runs in every policy, listed or not; they cannot be attached.
MANDATORY = frozenset(
    [
        *("CompatibilityVersion", "CPU-Level", "CPUTopology", "CpuPinning"),
        *("HostDevice", "PinToHost", "VM leases ready", "MDevice"),
    ]
)


def usual_units() -> tuple[Rule, ...]:
    """Our units that every policy of ours has."""
    return tuple(rule for rule in UNITS.values() if not rule.on_request)


def twins(kind: UnitKind) -> dict[str, str]:
    """Our filters or weights that stand next to one of the engine's, and that one, by name."""
    return {rule.name: rule.twins[0] for rule in UNITS.values() if rule.kind is kind and rule.twins}


class Units(dict[str, PolicyUnit]):
    """The engine's policy units by id."""

    def id_of(self, kind: UnitKind, name: str, *, internal: bool = False) -> str | None:
        """By type and name: an external one has another id in each engine."""
        wanted = (kind, name, internal)
        return next((i for i, unit in self.items() if (unit.type, unit.name, unit.internal) == wanted), None)

    def name_of(self, unit: str) -> str:
        """One that the engine does not list has its id for a name."""
        return self[unit].name if unit in self else unit

    def ours(self, among: Iterable[str]) -> set[str]:
        """Those of these ids that are units of ours."""
        return {i for i in among if i in self and not self[i].internal and self[i].name in UNITS}

    def properties(self, held: Collection[str]) -> dict[str, str]:
        """The properties that a policy with these units knows, each with its regular expression."""
        return {
            name: regex
            for i, unit in self.items()
            if i in held or unit.name in MANDATORY
            for name, regex in unit.properties.items()
        }

    def weight_twins(self) -> dict[str, str]:
        """Ids of our weights with those of the engine's next to them, as far as the engine knows both."""
        found = {
            self.id_of(UnitKind.WEIGHT, own): self.id_of(UnitKind.WEIGHT, twin, internal=True)
            for own, twin in twins(UnitKind.WEIGHT).items()
        }
        return {own: twin for own, twin in found.items() if own is not None and twin is not None}


@dataclass(frozen=True)
class Target:
    """A policy that is to have our units, by its name, and what else the administrator asks for."""

    policy: str
    #: The ids of the clusters that are to use it from now on.
    clusters: Collection[str] = ()
    #: The engine's policy that it is made like, if it must be made.
    origin: str = "none"
    factors: Mapping[str, int] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    placement_keys: bool = False
    #: A word of `ADMISSION_UNITS`.
    ha_admission: str | None = None


@dataclass(frozen=True)
class SetupPlan:
    requests: tuple[PolicyRequest, ...] = ()
    #: What the administrator should know besides them.
    notes: tuple[str, ...] = ()
    #: The policy as they leave it; None if there is none then.
    after: PolicyContent | None = None
    #: Clusters as they leave them, of those that have the policy before or afterwards and that they change.
    users: tuple[PolicyUser, ...] = ()
    #: Other policies, which remember what this one did, as they leave them.
    others: tuple[PolicyHead, ...] = ()
    #: What the clusters have in force that use it, and the ids of these; None where units only go.
    policy: Policy | None = None
    clusters: tuple[str, ...] = ()


def check_unspoilt(units: Units, policy: PolicyContent) -> None:
    for unit in policy.repeated:
        raise UserError(
            f"the engine has {units.name_of(unit)} twice in the policy {policy.head.name}"
            " and refuses every change of it: restart ovirt-engine, which forgets the second"
        )


def with_properties(policy: PolicyContent, properties: Mapping[str, str]) -> PolicyContent:
    return replace(policy, head=replace(policy.head, properties=dict(properties)))


def left_of(entries: Entries, gone: Collection[str]) -> Entries:
    """Without those that are gone."""
    return {unit: number for unit, number in entries.items() if unit not in gone}


# -- What the engine has.
#: The engine's policy that ours is made like if it is made like no other.
BASE = "none"
BASE_ID = "b4ed2332-a7ac-4d5f-9596-99a439cb2812"


@dataclass(frozen=True)
class Overview:
    """All policies of the engine without their units, the clusters that use them, and all units."""

    units: Units
    heads: tuple[PolicyHead, ...]
    users: tuple[PolicyUser, ...]

    def named(self, name: str) -> PolicyHead | None:
        return next((head for head in self.heads if head.name == name), None)

    def undone(self, policy: str, plan: SetupPlan) -> Self:
        """As the undoing of a policy leaves it."""
        by_id = {head.id: head for head in (*self.heads, *plan.others)}
        heads = [head for head in by_id.values() if head.name != policy]
        if plan.after is not None:
            heads.append(plan.after.head)
        users = {user.id: user for user in (*self.users, *plan.users)}
        return replace(self, heads=tuple(heads), users=tuple(users.values()))


def read_overview(connection: EngineConnection) -> Overview:
    """Read all policies and who uses them.

    An engine that refuses to rename its own policy shows the new name until it restarts.
    """
    units = Units(policies.read_units(connection))
    heads = (replace(one, name=BASE) if one.id == BASE_ID else one for one in policies.read_heads(connection))
    return Overview(units, tuple(heads), policies.read_users(connection))


def read_policy(connection: EngineConnection, overview: Overview, name: str) -> PolicyContent | None:
    """Read a policy with its units; None if the engine has none of the name."""
    head = overview.named(name)
    return None if head is None else policies.read_content(connection, head)


# -- Single requests that change a policy or what a cluster uses.
def create(name: str, description: str) -> PolicyRequest:
    body = E.scheduling_policy(E.name(name), E.description(description))
    return PolicyRequest(f"make the policy {name}", "POST", "/schedulingpolicies", tostring(body))


def remove(policy: PolicyContent) -> PolicyRequest:
    return PolicyRequest(f"remove the policy {policy.head.name}", "DELETE", _path(policy))


def describe(
    policy: PolicyContent, description: str, what: str, before: str | None = None
) -> Iterator[PolicyRequest]:
    """Nothing, where that is the policy's description already; `before` is what it is by then."""
    if description != (policy.head.description if before is None else before):
        body = E.scheduling_policy(E.description(description))
        yield PolicyRequest(what, "PUT", _path(policy), tostring(body))


def assign(cluster: PolicyUser, policy_id: str, properties: Mapping[str, str], what: str) -> PolicyRequest:
    """Let a cluster use a policy, with its own values of properties, if there are any."""
    body = E.cluster(E.scheduling_policy(id=policy_id))
    if properties:
        body.append(E.custom_scheduling_policy_properties(*_listed(properties)))
    return PolicyRequest(what, "PUT", f"/clusters/{cluster.id}", tostring(body))


def _attach(policy: PolicyContent, collection: str, unit: str, what: str, **number: int) -> PolicyRequest:
    place = (E(name, str(value)) for name, value in number.items())
    body = E(ENTRIES[collection], *place, E.scheduling_policy_unit(id=unit))
    return PolicyRequest(what, "POST", f"{_path(policy)}/{collection}", tostring(body), unit=unit)


def _detach(policy: PolicyContent, collection: str, unit: str, what: str) -> PolicyRequest:
    return PolicyRequest(what, "DELETE", f"{_path(policy)}/{collection}/{unit}")


def _set_properties(policy: PolicyContent, properties: Mapping[str, str]) -> PolicyRequest:
    words = ", ".join(f"{name}={value}" for name, value in properties.items())
    body = E.scheduling_policy(E.properties(*_listed(properties)))
    what = f"set the policy's properties: {words or 'none'}"
    return PolicyRequest(what, "PUT", _path(policy), tostring(body))


def _listed(properties: Mapping[str, str]) -> Iterator[object]:
    return (E.property(E.name(name), E.value(value)) for name, value in properties.items())


def _path(policy: PolicyContent) -> str:
    return f"/schedulingpolicies/{policy.head.id}"


# -- From what a policy holds to what it is to hold, whether units of ours come or go.
def lead_to(units: Units, policy: PolicyContent, after: PolicyContent) -> Iterator[PolicyRequest]:
    """The requests in an order that the engine accepts.

    It can only take a weight out, without its parameters, and in again; and it refuses a property that no
    unit knows. So the properties come when all units are there that know them, and what goes, goes last.
    """
    away = parameters_away(units, policy, after)
    taken = set(policy.filters.values())
    for unit, position in after.filters.items():
        if unit not in policy.units:
            # At most one filter is first and one last.
            free = 0 if position in taken else position
            taken.add(free)
            yield _attach(policy, "filters", unit, f"add the filter {units[unit].name}", position=free)
    properties = {name: value for name, value in policy.head.properties.items() if name not in away}
    if away:
        yield _set_properties(policy, properties)
    yield from _set_factors(units, policy, after)
    for unit in after.balances.keys() - policy.balances.keys():
        # The engine refuses a balance while a property is set that only the former one knows.
        lasting = {name: value for name, value in properties.items() if name in after.head.properties}
        if lasting != properties:
            yield _set_properties(policy, lasting)
        yield _attach(policy, "balances", unit, f"set the balance {units[unit].name}")
        properties = lasting
    if properties != after.head.properties:
        yield _set_properties(policy, after.head.properties)
    for collection in ("filters", "weights"):
        for unit in left_of(getattr(policy, collection), getattr(after, collection)):
            what = f"take out the {ENTRIES[collection]} {units.name_of(unit)}"
            yield _detach(policy, collection, unit, what)


def _set_factors(units: Units, policy: PolicyContent, after: PolicyContent) -> Iterator[PolicyRequest]:
    for unit, factor in after.weights.items():
        name, present = units.name_of(unit), policy.weights.get(unit)
        if present is None:
            yield _attach(policy, "weights", unit, f"add the weight {name} x {factor}", factor=factor)
        elif present != factor:
            what = f"change the factor of {name} from {present} to {factor}"
            yield _detach(policy, "weights", unit, f"{what}: take it out")
            yield _attach(policy, "weights", unit, f"{what}: put it back", factor=factor)


def parameters_away(units: Units, policy: PolicyContent, after: PolicyContent) -> dict[str, str]:
    """Parameters that only weights know whose factors change: the engine refuses those meanwhile."""
    changing = changing_factors(policy, after)
    known = units.properties({*policy.units} - changing.keys())
    return {n: value for n, value in policy.head.properties.items() if changing and n not in known}


def changing_factors(policy: PolicyContent, after: PolicyContent) -> dict[str, int]:
    """The factors, by unit, of weights that have others afterwards."""
    return {
        unit: factor for unit, factor in policy.weights.items() if after.weights.get(unit, factor) != factor
    }
