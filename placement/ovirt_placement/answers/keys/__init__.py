"""Placement keys with names, in sentences and as data; what they say of a host, and how they place a VM."""

from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Annotated

import msgspec

from ovirt_placement.answers.document import Document, Table, Unit, listed, unit_names
from ovirt_placement.answers.question import VMS, AuthoredState, Parameter, Reads, question
from ovirt_placement.model import Cluster, PlacementKey, Snapshot, Vm
from ovirt_placement.model.names import (
    Named,
    NamedCluster,
    NamedHost,
    NamedVm,
    host_name,
    resource_name,
    vm_name,
)
from ovirt_placement.model.record import From, Record, with_names
from ovirt_placement.rules.catalogue import judge
from ovirt_placement.rules.placement_keys.capacity import Shortage
from ovirt_placement.rules.placement_keys.hierarchy import NAME, MissingNodeKeys, Mistake, MistakenKey
from ovirt_placement.rules.placement_keys.judgement import KeyDecision, KeyFailure
from ovirt_placement.rules.placement_keys.keys import KeyKind, key_kind, settings_of
from ovirt_placement.rules.placement_keys.units import KEY_FILTER, KEY_WEIGHT, decide_vm, ranked_first

# -- Says what placement keys are and what is wrong with them, with names in place of ids.
#: What keys do not do without one of our units.
_WITHOUT = {
    KEY_FILTER.name: "no host is refused by placement keys",
    KEY_WEIGHT.name: "hosts are not ranked by placement keys",
}
#: From here on a whole number is written with its first digits.
_MANY = 10**15


def where_mistaken(mistake: Mistake, snapshot: Snapshot) -> str:
    """Where to look for what is wrong."""
    if isinstance(mistake, MistakenKey):
        return key_title(mistake.key, snapshot)
    if isinstance(mistake, MissingNodeKeys):
        return f"host {host_name(mistake.host, snapshot)}"
    return f"VM {vm_name(mistake.vm, snapshot)}: custom property {NAME}"


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


def figure(number: Fraction | float) -> str:
    """A number as people write it: whole ones in full, others with six digits at most."""
    whole = -_MANY < number < _MANY and number == int(number)
    return str(int(number)) if whole else f"{float(number):g}"


# -- A placement key, and what it is set on.
class KeyRecord(Record, frozen=True, omit_defaults=False, kw_only=True):
    """A placement key, and what it is set on."""

    kind: Annotated[KeyKind, From(lambda key, _: key_kind(key))]
    #: What it is and what it is set on, in words.
    sentence: Annotated[str, From(key_title)]
    #: The level and the name of what it is set on.
    place: Annotated[str, From(key_place)]
    level: str
    resource: Annotated[
        Named, From(lambda key, state: Named(key.resource, resource_name(key.level, key.resource, state)))
    ]
    key_class: str = msgspec.field(name="class")
    name: str
    value: float | str
    weight: float | None
    sticky: bool


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
    total: Number
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


# -- in words
def score_cells(one: HostKeys) -> tuple[str, ...]:
    """What stands below `HEADERS`; all empty for a host without room."""
    system, customer = (
        (_sum(score), figure(score.total)) if score else ("", "") for score in (one.system, one.customer)
    )
    return (*system, str(one.round or ""), *customer)


def _sum(score: KeyScore) -> str:
    """The names that count, as in `GEN: 80 x 0.5`; of several VMs that bring the same value, each counts."""
    return "\n".join(
        f"{match.name}: {figure(match.weight)} x {figure(match.proximity)}"
        + (f" x {match.count}" if match.count > 1 else "")
        for match in score.matches
    )


# -- One placement by keys, step by step and host by host.
_OTHERS = "Other filters refuse every host: keys have nothing to choose from."
_LAST = "Ranked last regardless of keys, as failover hosts or away from the VM's affinity group"


class HostPlace(HostKeys, frozen=True, omit_defaults=False, kw_only=True):
    """A host in one placement: how far it comes by keys, and which other filters refuse it."""

    host: NamedHost
    refused_by: tuple[Unit, ...]


class KeysExplainDocument(Document, frozen=True, kw_only=True, tag="keys_explain"):
    """One placement by keys, among the hosts that all other filters accept."""

    vm: NamedVm
    cluster: NamedCluster
    #: Where the VM runs now.
    host: NamedHost | None
    #: What the scores have to exceed in each round.
    thresholds: tuple[Number, ...]
    #: The first round that any host passed.
    round: int | None
    #: The hosts that passed it, and of these the best.
    candidates: tuple[NamedHost, ...]
    choice: tuple[NamedHost, ...]
    failed: KeyFailure | None
    #: Whether its storage binds the VM to a host, so that keys have no say.
    local_storage: bool
    sentence: str
    #: What is ranked last regardless of keys, and what the policy lacks for keys to count: a sentence each.
    notes: tuple[str, ...]
    hosts: tuple[HostPlace, ...]


@question(
    "keys explain",
    "how keys place a VM",
    """\
Show how keys place a VM, host by host: nearness, score, round, customer's score, and the chosen host.
""",
    examples="  ovirt-placement keys explain web1\n",
    text=lambda answer, _: _explain_text(answer),
    reads=Reads.KEYS,
)
def keys_explain(
    state: AuthoredState,
    vm: Annotated[Vm, Parameter("its name or id", "VM", VMS, positional=True)],
    *,
    whole: Annotated[bool, Parameter(common="all")] = True,
) -> KeysExplainDocument:
    """How keys place a VM; unless `whole`, the sentence names no more hosts than a person reads."""
    snapshot = state.snapshot
    hosts = snapshot.hosts_of_cluster.get(vm.cluster, ())
    asked = tuple(host.id for host in hosts if host.id != vm.host)
    settings = settings_of(snapshot.cluster_by_id[vm.cluster].scheduling_properties)
    refused = _refused(snapshot, vm)
    left = [host for host in asked if host not in refused]
    every = decide_vm(snapshot, vm, asked, settings)
    accepted = [host for host in left if every.judgement is None or host in every.judgement.accepted]
    first = ranked_first(snapshot, vm.id, accepted)
    decision = every if every.failed is not None else decide_vm(snapshot, vm, first or left, settings)
    others = every.failed is None and not left
    last = [host_name(host, snapshot) for host in accepted if host not in first]
    return with_names(
        KeysExplainDocument,
        decision,
        snapshot,
        vm=vm.id,
        cluster=vm.cluster,
        host=vm.host,
        sentence=_OTHERS if others else _outcome(decision, snapshot, whole=whole),
        notes=(
            *((f"{_LAST}: {listed(last, whole=whole)}.",) if last else ()),
            *without_effect([snapshot.cluster_by_id[vm.cluster]]),
        ),
        hosts=tuple(
            with_names(HostPlace, one, snapshot, refused_by=refused.get(one.host, ())) for one in every.hosts
        ),
    )


def _refused(snapshot: Snapshot, vm: Vm) -> dict[str, tuple[Unit, ...]]:
    """The hosts of a VM's cluster that other filters than that of keys refuse, each with those filters."""
    found: dict[str, tuple[Unit, ...]] = {}
    for host in judge(snapshot, vm, snapshot.hosts_of_cluster.get(vm.cluster, ())).hosts:
        vetoes = (rule for reason, rules in host.reasons if reason.kind.veto for rule in rules)
        if others := dict.fromkeys(rule for rule in vetoes if not rule.ours or rule.name != KEY_FILTER.name):
            found[host.host] = tuple(Unit(rule.name, not rule.ours) for rule in others)
    return found


def _outcome(decision: KeyDecision, snapshot: Snapshot, *, whole: bool) -> str:
    """Which hosts are chosen from."""
    names = listed([host_name(host, snapshot) for host in decision.choice], " or ", whole=whole)
    if decision.local_storage:
        return f"Its storage is local, so that keys do not count: {names}."
    if decision.failed is not None or decision.round is None:
        return (decision.failed or KeyFailure.CONSTRAINT).text.format(final=figure(decision.thresholds[-1]))
    above = figure(decision.thresholds[decision.round - 1])
    drawn = ", by lot" if len(decision.choice) > 1 else ""
    return f"Round {decision.round} (above {above}): {names}{drawn}."


# -- in words
def _explain_text(answer: KeysExplainDocument) -> Iterator[str | Table]:
    choice = {host.id for host in answer.choice}
    if rows := [_explain_row(one, chosen=one.host.id in choice) for one in answer.hosts]:
        yield Table(rows, ("host", *SCORE_HEADERS, ""))
        yield ""
    yield from (answer.sentence, *answer.notes)


def _explain_row(place: HostPlace, *, chosen: bool) -> tuple[str, ...]:
    if place.system is None:
        figures = {
            Shortage.NOT_UP: ("", 0),
            Shortage.UNCONTENDED: (figure(place.uncontended_mb), place.uncontended_need_mb),
            Shortage.CONTENDED: (str(place.contended_mb), place.contended_need_mb),
        }
        lacking = (which.text.format(*figures[which]) for which in place.shortages)
        return place.host.name, "\n".join(lacking), "", "", "", "", "no room"
    if place.refused_by:
        return place.host.name, *score_cells(place), f"refused by {unit_names(place.refused_by)}"
    return place.host.name, *score_cells(place), "chosen" if chosen else "" if place.round else "refused"
