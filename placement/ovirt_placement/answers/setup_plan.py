"""What is to be asked of an engine until a policy has our units and clusters use it; nothing if they do."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lxml import etree

from ovirt_placement.answers import policy_units as ours
from ovirt_placement.engine.parsing.policies import Entry, Unit
from ovirt_placement.engine.writing.policies import NEW, PolicyContent, PolicyUser, Request
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

#: The description of a policy that we made; of another's policy we change no more than we must.
MADE = "As the policy none, with the units of ovirt-placement"

#: More than all usual weights together can give in a cluster of 700 hosts.
_KEY_WEIGHT_FACTOR = 100_000


@dataclass(frozen=True)
class Choice:
    """What the administrator asks for."""

    policy: str
    factors: Mapping[str, int] = field(default_factory=dict)
    properties: Mapping[str, str] = field(default_factory=dict)
    placement_keys: bool = False


@dataclass(frozen=True)
class Seen:
    """What the engine has."""

    units: Mapping[str, Unit]
    #: The engine's own policy `none`.
    base: PolicyContent
    #: The policy of the name asked for, if there is one.
    target: PolicyContent | None
    #: The clusters that are to use it.
    clusters: tuple[PolicyUser, ...]


@dataclass(frozen=True)
class Plan:
    requests: tuple[Request, ...]
    #: What the administrator should know beside them.
    notes: tuple[str, ...]


def plan(seen: Seen, choice: Choice) -> Plan:
    """Plan the requests, in order. Raises `UserError` for what the engine lacks or would refuse."""
    planner = _Planner(seen, choice)
    requests = (
        *planner.policy(),
        *planner.filters(),
        *planner.weights(),
        *planner.balance(),
        *planner.properties(),
        *planner.replaced_weights(),
        *planner.assignments(),
    )
    return Plan(requests, tuple(planner.notes))


class _Planner:
    def __init__(self, seen: Seen, choice: Choice) -> None:
        self._seen = seen
        self._choice = choice
        self._target = seen.target
        self.notes: list[str] = []
        if self._target is not None:
            _check_policy(self._target, seen.units)
        self._own = self._target is None or self._target.head.description == MADE
        self._id = NEW if self._target is None else self._target.head.id
        self._replaced = self._replaced_units()
        self._filters = self._wanted_filters()
        self._weights = self._wanted_weights()
        self._balance = self._wanted_balance()
        self._known = self._known_properties()
        self._properties = self._wanted_properties()

    def policy(self) -> Iterator[Request]:
        if self._target is None:
            body = _element("scheduling_policy", name=self._choice.policy, description=MADE)
            what = f"make the policy {self._choice.policy}"
            yield Request(what, "POST", "/schedulingpolicies", _xml(body))

    def filters(self) -> Iterator[Request]:
        present = _entries(self._target.filters if self._target else ())
        taken = set(present.values())
        for unit, position in self._filters.items():
            if unit not in present:
                # At most one filter is first and one last.
                free = 0 if position in taken else position
                taken.add(free)
                yield self._attach("filters", unit, f"add the filter {self._name(unit)}", position=free)

    def weights(self) -> Iterator[Request]:
        present = _entries(self._target.weights if self._target else ())
        for unit, factor in self._weights.items():
            name = self._name(unit)
            if unit not in present:
                yield self._attach("weights", unit, f"add the weight {name} x {factor}", factor=factor)
            elif present[unit] != factor:
                what = f"change the factor of {name} from {present[unit]} to {factor}"
                yield self._detach("weights", unit, f"{what}: take it out")
                yield self._attach("weights", unit, f"{what}: put it back", factor=factor)

    def replaced_weights(self) -> Iterator[Request]:
        for entry in self._target.weights if self._target else ():
            if entry.unit in self._replaced:
                what = f"take out the engine's weight {self._name(entry.unit)}, which ours replaces"
                yield self._detach("weights", entry.unit, what)

    def balance(self) -> Iterator[Request]:
        if self._balance not in _entries(self._target.balances if self._target else ()):
            yield self._attach("balances", self._balance, f"set the balance {self._name(self._balance)}")

    def properties(self) -> Iterator[Request]:
        """Set them when all units are there that know them, and while those still are that will go."""
        if self._properties != (self._target.head.properties if self._target else {}):
            body = etree.Element("scheduling_policy")
            body.append(_property_list("properties", self._properties))
            words = ", ".join(f"{name}={value}" for name, value in self._properties.items())
            yield Request(
                f"set the policy's properties: {words or 'none'}",
                "PUT",
                f"/schedulingpolicies/{self._id}",
                _xml(body),
            )

    def assignments(self) -> Iterator[Request]:
        given = dict(self._choice.properties)
        for cluster in self._seen.clusters:
            merged = {**self._properties, **cluster.properties, **given}
            kept = {name: value for name, value in merged.items() if name in self._known}
            for name, value in kept.items():
                _check_value(name, value, self._known[name], f"cluster {cluster.name}")
            for name in sorted(merged.keys() - kept.keys()):
                self.notes.append(
                    f"cluster {cluster.name} loses its property {name}={merged[name]}: no unit of the policy"
                    " knows it"
                )
            if cluster.policy != self._id or kept != cluster.properties:
                body = etree.Element("cluster")
                etree.SubElement(body, "scheduling_policy", id=self._id)
                if given:
                    body.append(_property_list("custom_scheduling_policy_properties", given))
                what = f"let the cluster {cluster.name} use the policy"
                yield Request(what, "PUT", f"/clusters/{cluster.id}", _xml(body))

    def _wanted_filters(self) -> dict[str, int]:
        """Positions by unit: ours, the engine's beside them, and in our own policy all those of `none`."""
        wanted: dict[str, int] = {}
        for entry in self._seen.base.filters if self._own else ():
            if self._name(entry.unit) not in ours.MANDATORY:
                wanted[entry.unit] = entry.number
        for name, beside in ours.FILTERS.items():
            wanted.setdefault(self._unit(ours.FILTER, beside, internal=True), 0)
            wanted[self._unit(ours.FILTER, name)] = 0
        if self._choice.placement_keys:
            wanted[self._unit(ours.FILTER, ours.KEY_FILTER)] = 0
        return wanted

    def _wanted_weights(self) -> dict[str, int]:
        """Factors by unit: one that is there keeps its own, unless another is asked for."""
        present = _entries(self._target.weights if self._target else ())
        of_base = _entries(self._seen.base.weights)
        wanted = {
            unit: factor for unit, factor in of_base.items() if self._own and unit not in self._replaced
        }
        names = [*ours.WEIGHTS, *([ours.KEY_WEIGHT] if self._choice.placement_keys else [])]
        for name in names:
            replaced = ours.unit_id(self._seen.units, ours.WEIGHT, ours.WEIGHTS.get(name, ""), internal=True)
            usual = _KEY_WEIGHT_FACTOR if name == ours.KEY_WEIGHT else of_base.get(replaced or "", 1)
            wanted[self._unit(ours.WEIGHT, name)] = present.get(replaced or "", usual)
        wanted = {unit: present.get(unit, factor) for unit, factor in wanted.items()}
        return {**wanted, **self._asked_factors()}

    def _asked_factors(self) -> dict[str, int]:
        """Factors by unit; one that the policy lacks comes in, as after a change that was interrupted."""
        by_name = {
            unit.name: unit_id
            for unit_id, unit in self._seen.units.items()
            if unit.type == ours.WEIGHT and unit.enabled and unit_id not in self._replaced
        }
        for name in self._choice.factors:
            if name not in by_name:
                instead = next((own for own, engines in ours.WEIGHTS.items() if engines == name), None)
                hint = f"; ours in its place is {instead}" if instead else nearest(name, by_name)
                raise UserError(f"--factor {name}: no weight that the policy can have{hint}")
        return {by_name[name]: factor for name, factor in self._choice.factors.items()}

    def _replaced_units(self) -> set[str]:
        found = (
            ours.unit_id(self._seen.units, ours.WEIGHT, name, internal=True) for name in ours.WEIGHTS.values()
        )
        return {unit for unit in found if unit is not None}

    def _wanted_balance(self) -> str:
        """Ours, unless somebody's own policy balances by other ends: a policy holds one balance only."""
        own = self._unit(ours.BALANCE, ours.HA_BALANCE)
        for entry in self._target.balances if self._target and not self._own else ():
            name = self._name(entry.unit)
            if entry.unit != own and name not in ours.REPLACED_BALANCES:
                self.notes.append(
                    f"the policy keeps its balance {name}; HaReservationBalance would have to take its place"
                )
                return entry.unit
        return own

    def _known_properties(self) -> dict[str, str]:
        """The regular expression of each property that a unit of the finished policy knows."""
        present = self._target.units if self._target else ()
        units = [*present, *self._filters, *self._weights]
        balances = [entry.unit for entry in self._target.balances] if self._target else []
        gone = self._replaced | {unit for unit in balances if unit != self._balance}
        mandatory = [i for i, unit in self._seen.units.items() if unit.name in ours.MANDATORY]
        return {
            name: regex
            for unit in (*mandatory, *(unit for unit in units if unit not in gone), self._balance)
            for name, regex in (self._seen.units[unit].properties if unit in self._seen.units else {}).items()
        }

    def _wanted_properties(self) -> dict[str, str]:
        of_base = self._seen.base.head.properties if self._own else {}
        present = self._target.head.properties if self._target else {}
        merged = {**of_base, **present}
        kept = {name: value for name, value in merged.items() if name in self._known}
        for name, value in self._choice.properties.items():
            if name not in self._known:
                raise UserError(
                    f"--property {name}: no unit of the policy knows it{nearest(name, self._known)}"
                )
            _check_value(name, value, self._known[name], "--property")
        return {**kept, **self._choice.properties}

    def _attach(self, collection: str, unit: str, what: str, **numbers: int) -> Request:
        words = {name: str(number) for name, number in numbers.items()}
        body = _element(collection.removesuffix("s"), **words)
        etree.SubElement(body, "scheduling_policy_unit", id=unit)
        path = f"/schedulingpolicies/{self._id}/{collection}"
        return Request(what, "POST", path, _xml(body), unit=unit)

    def _detach(self, collection: str, unit: str, what: str) -> Request:
        return Request(what, "DELETE", f"/schedulingpolicies/{self._id}/{collection}/{unit}")

    def _unit(self, kind: str, name: str, *, internal: bool = False) -> str:
        found = ours.unit_id(self._seen.units, kind, name, internal=internal)
        if found is None:
            raise UserError(
                f"the engine has no {kind.replace('_', ' ')} unit {name}: it asks the proxy for its units"
                " only when it starts; `ovirt-placement doctor` says what to do"
            )
        if not self._seen.units[found].enabled:
            raise UserError(
                f"the engine has disabled {name}: the proxy did not offer it when the engine started;"
                " `ovirt-placement doctor` says what to do"
            )
        return found

    def _name(self, unit: str) -> str:
        return self._seen.units[unit].name if unit in self._seen.units else unit


def _check_policy(target: PolicyContent, units: Mapping[str, Unit]) -> None:
    name = target.head.name
    if target.head.locked:
        raise UserError(f"the policy {name} is the engine's own and locked: choose another name by --policy")
    for unit, times in Counter(target.units).items():
        if times > 1:
            raise UserError(
                f"the engine holds {units[unit].name if unit in units else unit} twice in the policy {name}"
                " and refuses every change of it: restart ovirt-engine, which forgets the second"
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


def _entries(entries: Sequence[Entry]) -> dict[str, int]:
    return {entry.unit: entry.number for entry in entries}


def _property_list(tag: str, properties: Mapping[str, str]) -> etree._Element:
    listed = etree.Element(tag)
    for name, value in properties.items():
        listed.append(_element("property", name=name, value=value))
    return listed


def _element(tag: str, **texts: str) -> etree._Element:
    element = etree.Element(tag)
    for name, text in texts.items():
        etree.SubElement(element, name).text = text
    return element


def _xml(element: etree._Element) -> bytes:
    return etree.tostring(element)
