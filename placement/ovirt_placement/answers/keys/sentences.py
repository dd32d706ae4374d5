"""Says what placement keys are and what is wrong with them, with names in place of ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from ovirt_placement.model import Cluster, PlacementKey, Snapshot
from ovirt_placement.model.key_resources import resource_name
from ovirt_placement.model.names import host_name, vm_name
from ovirt_placement.rules.placement_keys import key_filter, key_weight
from ovirt_placement.rules.placement_keys.compile import MistakenKey
from ovirt_placement.rules.placement_keys.keys import Code
from ovirt_placement.rules.placement_keys.mistakes import MissingNodeKeys, Mistake
from ovirt_placement.rules.placement_keys.property import NAME

#: What keys do not do without one of our units.
_WITHOUT = {
    key_filter.RULE.name: "no host is refused by placement keys",
    key_weight.RULE.name: "hosts are not ranked by placement keys",
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
        lacking = [rule.name for rule in (key_filter.RULE, key_weight.RULE) if not rule.enabled_in(cluster)]
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
