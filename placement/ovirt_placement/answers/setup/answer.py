"""What setup did about scheduling policies and special keys, or would do: each as it was, and as it is."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement.answers.document import ChangeDocument
from ovirt_placement.answers.setup import MANDATORY, Overview, SetupPlan
from ovirt_placement.engine.clusters import PolicyUser
from ovirt_placement.engine.policies import PolicyContent
from ovirt_placement.model.names import Named, counted
from ovirt_placement.model.record import CLUSTER, Record
from ovirt_placement.rules.placement_keys.keys import CPU, LOAD, RAM, SPECIAL_NAMES
from ovirt_placement.store.keys import DefaultKey, DefaultKeyChange, DefaultKeys

# -- Which special keys setup gives the clusters whose policy places by keys, and which of them it takes back.
DEFAULT_WEIGHTS: Mapping[str, float] = MappingProxyType({RAM: 40.0, CPU: 30.0, LOAD: 30.0})


class ClusterKeys(Record, frozen=True, omit_defaults=False):
    """Special keys that setup gives a cluster, or takes from it."""

    sentence: str
    cluster: Named
    removed: bool
    #: By name.
    weights: dict[str, float]


def keys_to_give(policy: str, clusters: Iterable[str], there: DefaultKeys) -> DefaultKeyChange:
    """What clusters are to be given that use the policy, by the ids of these."""
    wanted = set(clusters)
    # Those on which a user weighs special keys, or that were given them once.
    keys = (key for key in there.keys if key.level == CLUSTER and key.name in SPECIAL_NAMES)
    settled = {*(key.resource for key in keys), *(one.cluster for one in there.given)}
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


def keys_to_remove(policy: str, there: DefaultKeys) -> DefaultKeyChange:
    """What goes of the keys that clusters were given for the policy; what a user changed stays."""
    standing = {key.place: key for key in there.keys}
    as_given = {one for one in there.given if standing.get(one.key.place) == one.key}
    own = [one for one in there.given if one.policy == policy]
    return DefaultKeyChange(
        take=tuple(one for one in own if one in as_given),
        leave=tuple(one for one in own if one not in as_given),
    )


def changes(change: DefaultKeyChange, clusters: Iterable[PolicyUser]) -> Iterator[ClusterKeys]:
    """Say of each cluster what it is given, and what it loses."""
    names = {cluster.id: cluster.name for cluster in clusters}
    for removed, keys in ((False, change.give), (True, change.take)):
        for cluster, some in groupby(keys, attrgetter("cluster")):
            weights = {one.name: one.weight for one in some}
            name = names.get(cluster, cluster)
            words = ", ".join(f"{key} ({weight:g})" for key, weight in weights.items())
            sentence = f"give the cluster {name} the placement keys {words}"
            if removed:
                sentence = f"take the placement keys {words} from the cluster {name}"
            yield ClusterKeys(sentence, Named(cluster, name), removed, weights)


def notes(change: DefaultKeyChange, there: DefaultKeys, clusters: Iterable[PolicyUser]) -> Iterator[str]:
    """Name the keys that stay although setup gave them: they were changed since."""
    names = {cluster.id: cluster.name for cluster in clusters}
    standing = {key.place for key in there.keys}
    for one in change.leave:
        if one.key.place in standing:
            name = names.get(one.cluster, one.cluster)
            yield f"the placement key {one.name} of cluster {name} stays: it was changed since setup set it"


# -- A scheduling policy with the clusters that use it.
class PolicyCluster(Record, frozen=True, omit_defaults=False):
    """A cluster that uses a policy."""

    name: str
    #: Its own values of the policy's properties.
    properties: dict[str, str]


class PolicyState(Record, frozen=True, omit_defaults=False, kw_only=True):
    """A scheduling policy, its units by name."""

    policy: str
    description: str
    #: Without those that the engine runs in every policy, listed or not.
    filters: tuple[str, ...]
    #: With their factors.
    weights: dict[str, int]
    balance: str | None
    properties: dict[str, str]
    clusters: tuple[PolicyCluster, ...]


def policy_state(
    overview: Overview, content: PolicyContent | None, users: Iterable[PolicyUser] = ()
) -> PolicyState | None:
    """A policy, none where the engine has none of the name; `users` are clusters that are otherwise then."""
    if content is None:
        return None
    units, head = overview.units, content.head
    clusters = {user.id: user for user in (*overview.users, *users)}.values()
    return PolicyState(
        policy=head.name,
        description=head.description,
        filters=tuple(sorted({*map(units.name_of, content.filters)} - MANDATORY)),
        weights=dict(sorted((units.name_of(one), factor) for one, factor in content.weights.items())),
        balance=next(map(units.name_of, content.balances), None),
        properties=head.properties,
        clusters=tuple(PolicyCluster(one.name, one.properties) for one in clusters if one.policy == head.id),
    )


# -- What setup did about scheduling policies, or would do.
class SentRequest(Record, frozen=True, omit_defaults=False):
    """A request to the engine."""

    sentence: str
    method: str
    path: str
    body: str


class PolicyChange(Record, frozen=True, omit_defaults=False):
    """What was done about a scheduling policy; an error, where it stays as it is."""

    policy: str
    requests: tuple[SentRequest, ...]
    placement_keys: tuple[ClusterKeys, ...]
    notes: tuple[str, ...]
    error: str | None


class SetupOutcome(NamedTuple):
    """What was done about a policy, or with `--dry-run` would be, and the policy before and after."""

    change: PolicyChange
    before: PolicyState | None = None
    after: PolicyState | None = None


class SetupDocument(ChangeDocument, frozen=True, kw_only=True, tag="setup"):
    """What was done about scheduling policies, or with `--dry-run` would be."""

    #: The policies that are not the same afterwards; one that is made, or removed, stands on one side only.
    #: The special keys of their clusters stand in `policies` alone.
    before: tuple[PolicyState, ...]
    after: tuple[PolicyState, ...]
    policies: tuple[PolicyChange, ...]
    notes: tuple[str, ...]


def policy_change(
    policy: str, plan: SetupPlan, keys: tuple[ClusterKeys, ...], key_notes: Iterable[str]
) -> PolicyChange:
    requests = (SentRequest(one.what, one.method, one.path, one.body.decode()) for one in plan.requests)
    return PolicyChange(policy, tuple(requests), keys, (*plan.notes, *key_notes), None)


def setup(outcomes: Sequence[SetupOutcome], notes: Iterable[str], *, dry_run: bool) -> SetupDocument:
    changed = [one for one in outcomes if one.change.requests or one.change.placement_keys]
    return SetupDocument(
        changed=bool(changed),
        dry_run=dry_run,
        before=tuple(one.before for one in changed if one.before is not None),
        after=tuple(one.after for one in changed if one.after is not None),
        policies=tuple(one.change for one in outcomes),
        notes=tuple(notes),
    )


# -- in words
def setup_lines(answer: SetupDocument, *, undo: bool, named: bool) -> Iterator[str]:
    """What was done, in lines; `named` policies stand above their requests, one that fails is left out."""
    tried = answer.dry_run and answer.changed
    if tried:
        requests = sum(len(one.requests) for one in answer.policies)
        before = {one.policy for one in answer.before}
        counts = [  # with the units and clusters that they have afterwards
            f"policy {one.policy}{'' if one.policy in before else ' (new)'} with"
            f" {counted(len(one.filters), 'filter')}, {counted(len(one.weights), 'weight')}"
            f" and {counted(len(one.clusters), 'cluster')}"
            for one in answer.after
        ]
        gone = before - {one.policy for one in answer.after}
        counts += (f"policy {name} removed" for name in sorted(gone))
        yield f"{counted(requests, 'request')} would be sent: {'; '.join(counts)}"
    for one in answer.policies:
        yield from _policy_lines(one, sent=not answer.dry_run, undo=undo, named=named)
    yield from (f"note: {note}" for note in answer.notes)
    if not answer.policies:
        yield "No policy has anything of setup." if undo else "No cluster uses a policy."
    elif tried:
        yield "Nothing was sent (--dry-run)."


def _policy_lines(change: PolicyChange, *, sent: bool, undo: bool, named: bool) -> Iterator[str]:
    keys = [each.sentence for each in change.placement_keys]
    requests = [
        line
        for request in change.requests
        for line in (
            request.sentence,
            *(() if sent else (f"    {request.method} {request.path}",)),
            *((f"    {request.body}",) if request.body and not sent else ()),
        )
    ]
    if change.error is not None:
        return
    if named and (requests or keys):
        yield f"policy {change.policy}:"
    yield from (*keys, *requests) if undo else (*requests, *keys)
    yield from (f"note: {note}" for note in change.notes)
    if not requests and not keys:
        state = "has nothing of setup" if undo else "is set up"
        yield f"The policy {change.policy} {state}; nothing to change."
