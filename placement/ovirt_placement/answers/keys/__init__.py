"""Placement keys with names: in sentences, as data, and what they say of a host."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Annotated, Any

import msgspec

from ovirt_placement.model import NO_STATE, Cluster, PlacementKey, Snapshot
from ovirt_placement.model.names import (
    Named,
    UnmatchedName,
    host_name,
    resource_name,
    unmatched,
    vm_name,
    with_names,
)
from ovirt_placement.model.placement_keys import CLUSTER, NODE, SERVER, SYSTEM
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.capacity import Shortage
from ovirt_placement.rules.placement_keys.hierarchy import NAME, MissingNodeKeys, Mistake, MistakenKey
from ovirt_placement.rules.placement_keys.judgement import HostDecision, Score
from ovirt_placement.rules.placement_keys.keys import Code, KeyKind, key_kind
from ovirt_placement.rules.placement_keys.units import KEY_FILTER, KEY_WEIGHT

# -- Says what placement keys are and what is wrong with them, with names in place of ids.
#: What keys do not do without one of our units.
_WITHOUT = {
    KEY_FILTER.name: "no host is refused by placement keys",
    KEY_WEIGHT.name: "hosts are not ranked by placement keys",
}
#: From here on a whole number is written with its first digits.
_MANY = 10**15

_SENTENCES = {
    Code.NAME_EMPTY: "it has no name",
    Code.VALUE_NOT_NUMERIC: "its value is no number",
    Code.WEIGHT_ZERO: "it has no weight, so it is no placement key",
    Code.RESERVED_AS_SYSTEM: "names that start with _ are for billing entities and customers to weigh",
    Code.SPECIAL_UNKNOWN: "of the names that start with #, there are only #RAM, #CPU and #LOAD, and on hosts"
    " #RAM_RATIO and #CPU_RATIO",
    Code.SPECIAL_NOT_SYSTEM: "only the operator weighs #RAM, #CPU and #LOAD",
    Code.SPECIAL_ON_NODE: "names that start with # are computed for hosts and cannot be set there, but for"
    " #RAM_RATIO and #CPU_RATIO",
    Code.RATIO_OUT_OF_RANGE: "a contention ratio is greater than 0 and less than 1000",
    Code.SPECIAL_CLUSTER_VALUE_NOT_0: "on a cluster its value must be 0; only its weight is yours to choose",
    Code.CUSTOMER_KEY_NOT_ALLOWED_HERE: "the user who set it may not set keys on this level",
    Code.STICKY_NOT_ON_NODE: "only keys of hosts can be sticky",
    Code.STICKY_WITHOUT_WEIGHT: "a sticky key needs a weight",
    Code.STICKY_AND_RESERVED: "a sticky key cannot be one that starts with _ or #",
    Code.NODE_KEY_SET_DIFFERS: "other hosts of its cluster have keys that it lacks",
    Code.PROPERTY_UNREADABLE: "it is not of the form NAME:VALUE:WEIGHT,... and all of it is ignored",
}


def code_sentence(code: Code) -> str:
    return _SENTENCES[code]


def mistake_place(mistake: Mistake, snapshot: Snapshot) -> str:
    """Where to look for what is wrong."""
    if isinstance(mistake, MistakenKey):
        return key_title(mistake.key, snapshot)
    if isinstance(mistake, MissingNodeKeys):
        return f"host {host_name(mistake.host, snapshot)}"
    return f"VM {vm_name(mistake.vm, snapshot)}: custom property {NAME}"


def mistake_sentence(mistake: Mistake) -> str:
    if isinstance(mistake, MistakenKey):
        return "; ".join(map(code_sentence, mistake.codes))
    if isinstance(mistake, MissingNodeKeys):
        return f"{code_sentence(Code.NODE_KEY_SET_DIFFERS)}: {', '.join(mistake.names)}"
    return f"{code_sentence(Code.PROPERTY_UNREADABLE)}: {mistake.text}"


def without_effect(clusters: Iterable[Cluster]) -> Iterator[str]:
    """What comes of keys in clusters whose policies are known to lack units of ours, in a sentence each."""
    for cluster in clusters:
        policy = cluster.scheduling_policy
        lacking = [rule.name for rule in (KEY_FILTER, KEY_WEIGHT) if not rule.enabled_in(cluster)]
        if policy is not None and lacking:
            what = "no effect" if len(lacking) > 1 else _WITHOUT[lacking[0]]
            yield (
                f"{what}: the policy of cluster {cluster.name} has no {' and no '.join(lacking)}"
                " (ovirt-placement setup --placement-keys)"
            )


def key_place(key: PlacementKey, snapshot: Snapshot) -> str:
    """The level of a key and what it is set on, as in `node north`, `vdc 00000002`."""
    return f"{key.level} {resource_name(key.level, key.resource, snapshot)}"


def key_title(key: PlacementKey, snapshot: Snapshot) -> str:
    """Which key it is: what it is set on, whose it is, its name."""
    return f"{key_place(key, snapshot)}: {key.key_class} key {key.name or '(no name)'}"


def written(value: float | str) -> str:
    """A key's value as its author would write it, with all digits."""
    return value if isinstance(value, str) else repr(value).removesuffix(".0")


def written_weight(weight: float | None) -> str:
    """A key's weight likewise; nothing for one without."""
    return "" if weight is None else written(weight)


def figure(number: Fraction | float) -> str:
    """A number as people write it: whole ones in full, others with six digits at most."""
    whole = -_MANY < number < _MANY and number == int(number)
    return str(int(number)) if whole else f"{float(number):g}"


# -- A placement key, and what it is set on.
class KeyRecord(Record, frozen=True, omit_defaults=False, kw_only=True):
    """A placement key, and what it is set on."""

    kind: KeyKind
    #: What it is and what it is set on, in words.
    sentence: str
    #: The level and the name of what it is set on.
    place: str
    level: str
    resource: Named
    key_class: str = msgspec.field(name="class")
    name: str
    value: float | str
    weight: float | None
    sticky: bool


def key_record(key: PlacementKey, snapshot: Snapshot) -> KeyRecord:
    """A key, with names."""
    return with_names(KeyRecord, key, snapshot, **key_words(key, snapshot))


def key_words(key: PlacementKey, snapshot: Snapshot) -> dict[str, Any]:
    """What `KeyRecord` has besides the key."""
    return {
        "kind": key_kind(key),
        "sentence": key_title(key, snapshot),
        "place": key_place(key, snapshot),
        "resource": Named(key.resource, resource_name(key.level, key.resource, snapshot)),
    }


# -- What placement keys say of a host.
#: The units of placement keys, which count where a policy enables them, or where that is asked for.
KEY_UNITS = frozenset({KEY_FILTER.name, KEY_WEIGHT.name})

SCORE_HEADERS = ("system keys", "score", "round", "customer keys", "score")


#: What is exact until it stands in an answer.
Number = Annotated[float, lambda exact, _: float(exact)]


class KeyMatch(Record, frozen=True, omit_defaults=False):
    """A key that counts, and how near the host comes to its value."""

    name: str
    value: Number
    weight: Number
    found: Number
    #: How many VMs bring this value to the host.
    count: int
    proximity: Number
    points: Number


class KeyScore(Record, frozen=True, omit_defaults=False):
    total: float
    matches: tuple[KeyMatch, ...]


class HostKeys(Record, frozen=True, omit_defaults=False):
    """How far a host comes: without room it has no system score, without a round no customer's score."""

    shortages: tuple[Shortage, ...]
    uncontended_mb: Number
    uncontended_need_mb: int
    contended_mb: float | None
    contended_need_mb: int
    round: int | None
    system: KeyScore | None
    customer: KeyScore | None


def host_keys(one: HostDecision) -> HostKeys:
    scores = {"system": _score(one.system), "customer": _score(one.customer)}
    return with_names(HostKeys, one.room, NO_STATE, round=one.round, **scores)


def _score(score: Score | None) -> KeyScore | None:
    if score is None:
        return None
    matches = (
        with_names(KeyMatch, match, NO_STATE, name=key.name, value=key.value, weight=key.weight)
        for match in score.matches
        for key in (match.key,)
    )
    return KeyScore(float(score.total), tuple(matches))


# -- in words
def score_cells(one: HostKeys) -> tuple[str, ...]:
    """What stands below `HEADERS`; all empty for a host without room."""
    return (
        _sum(one.system) if one.system else "",
        figure(one.system.total) if one.system else "",
        str(one.round or ""),
        _sum(one.customer) if one.customer else "",
        figure(one.customer.total) if one.customer else "",
    )


def _sum(score: KeyScore) -> str:
    """The names that count, as in `GEN: 80 x 0.5`; of several VMs that bring the same value, each counts."""
    return "\n".join(
        f"{match.name}: {figure(match.weight)} x {figure(match.proximity)}"
        + (f" x {match.count}" if match.count > 1 else "")
        for match in score.matches
    )


def unmatched_keys(snapshot: Snapshot) -> Iterator[UnmatchedName]:
    """Keys that operators have set for VMs and that no host has: they place nothing."""
    carried: defaultdict[str | None, set[str]] = defaultdict(set)
    for key in snapshot.placement_keys:
        if key.level == NODE and key.resource in snapshot.host_by_id:
            carried[snapshot.host_by_id[key.resource].cluster].add(key.name)
            carried[None].add(key.name)
    for key in snapshot.placement_keys:
        if key.key_class != SYSTEM or key_kind(key) is not KeyKind.PLACEMENT or key.level == NODE:
            continue  # those of customers are held against one another, too
        there = carried[_cluster_of(key, snapshot)]
        if key.name not in there:
            yield unmatched(key_title(key, snapshot), "host with the key", key.name, there)


def _cluster_of(key: PlacementKey, snapshot: Snapshot) -> str | None:
    """The cluster whose hosts a key is held against; None where that may be any."""
    vm = snapshot.vm_by_id.get(key.resource)
    if key.level == SERVER and vm is not None:
        return vm.cluster
    return key.resource if key.level == CLUSTER else None
