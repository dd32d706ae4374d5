"""Which special keys setup gives the clusters whose policy places by keys, and which of them it takes back.

Flexiant's document gives every cluster the special keys, and no weights: ours let an idle host score 100. A
cluster on which a user weighs any of them stays as it is, and so does one from which they were removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType

from msgspec.structs import replace

from ovirt_placement.engine.writing.policies import PolicyUser
from ovirt_placement.model import PlacementKey
from ovirt_placement.model.names import Named
from ovirt_placement.model.placement_keys import CLUSTER
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.keys import CPU, LOAD, RAM, SPECIAL_NAMES
from ovirt_placement.store.keys import DefaultKey, DefaultKeyChange, DefaultKeys

DEFAULT_WEIGHTS: Mapping[str, float] = MappingProxyType({RAM: 40.0, CPU: 30.0, LOAD: 30.0})


class ClusterKeys(Record, frozen=True, omit_defaults=False):
    """Special keys that setup gives a cluster, or takes from it."""

    sentence: str
    cluster: Named
    removed: bool
    #: By name.
    weights: dict[str, float]


def given(policy: str, clusters: Iterable[str], there: DefaultKeys) -> DefaultKeyChange:
    """What clusters are to be given that use the policy, by the ids of these."""
    wanted = set(clusters)
    settled = _weighing(there)
    return DefaultKeyChange(
        give=tuple(
            DefaultKey(cluster, name, weight, policy)
            for cluster in sorted(wanted - settled)
            for name, weight in DEFAULT_WEIGHTS.items()
        ),
        renew=tuple(
            replace(one, policy=policy)
            for one in there.given
            if one.cluster in wanted and one.policy != policy
        ),
    )


def taken(policy: str, there: DefaultKeys) -> DefaultKeyChange:
    """What goes of the keys that clusters were given for the policy; what a user changed stays."""
    standing = {_place(key): key for key in there.keys}
    as_given = {one for one in there.given if standing.get(_place(one.key)) == one.key}
    own = [one for one in there.given if one.policy == policy]
    return DefaultKeyChange(
        take=tuple(one for one in own if one in as_given),
        leave=tuple(one for one in own if one not in as_given),
    )


def _weighing(there: DefaultKeys) -> set[str]:
    """The clusters on which a user weighs special keys, or that were given them once."""
    keys = (key for key in there.keys if key.level == CLUSTER and key.name in SPECIAL_NAMES)
    return {*(key.resource for key in keys), *(one.cluster for one in there.given)}


def changes(change: DefaultKeyChange, clusters: Iterable[PolicyUser]) -> Iterator[ClusterKeys]:
    """Say of each cluster what it is given, and what it loses."""
    names = {cluster.id: cluster.name for cluster in clusters}
    for removed, keys in ((False, change.give), (True, change.take)):
        for cluster, some in groupby(keys, attrgetter("cluster")):
            weights = {one.name: one.weight for one in some}
            name = names.get(cluster, cluster)
            words = ", ".join(f"{key} ({weight:g})" for key, weight in weights.items())
            sentence = (
                f"take the placement keys {words} from the cluster {name}"
                if removed
                else f"give the cluster {name} the placement keys {words}"
            )
            yield ClusterKeys(sentence, Named(cluster, name), removed, weights)


def notes(change: DefaultKeyChange, there: DefaultKeys, clusters: Iterable[PolicyUser]) -> Iterator[str]:
    """Name the keys that stay although setup gave them: they were changed since."""
    names = {cluster.id: cluster.name for cluster in clusters}
    standing = {_place(key) for key in there.keys}
    for one in change.leave:
        if _place(one.key) in standing:
            name = names.get(one.cluster, one.cluster)
            yield f"the placement key {one.name} of cluster {name} stays: it was changed since setup set it"


def _place(key: PlacementKey) -> tuple[str, str, str, str]:
    return key.level, key.resource, key.key_class, key.name
