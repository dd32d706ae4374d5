"""What is known of each cluster, where from and how fresh it is, and whether its rules hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ovirt_placement import inventory
from ovirt_placement.answers.document import Document
from ovirt_placement.answers.freshness import dated, known_state
from ovirt_placement.config import Config
from ovirt_placement.inventory.expected.current import outcomes
from ovirt_placement.inventory.expected.traces import Outcomes
from ovirt_placement.inventory.on_demand.details import referred
from ovirt_placement.model import Cluster, Snapshot, Struct, state_file
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement.rules.violations import find_violations

HEADERS = ("cluster", "hosts up", "VMs running", "on their way", "HA VMs", "groups", "broken rules")

_NOTHING = Snapshot(clusters=(), hosts=(), vms=(), affinity_groups=(), affinity_labels=())


class StateSource(Struct, frozen=True):
    """Where a state comes from; ages in seconds."""

    kind: str
    where: str
    version: int | None = None
    age_seconds: float | None = None
    #: Since all was last read, whatever had changed.
    whole_age_seconds: float | None = None
    statistics_age_seconds: float | None = None
    #: Since the placement keys were those of the store.
    keys_age_seconds: float | None = None
    #: Whether it could be read when it was last asked.
    store_answers: bool | None = None
    #: Since the disks, network interfaces and owners that keys refer to were last read of all VMs.
    details_age_seconds: float | None = None
    #: Of the latest decisions that later ones counted with before the engine showed what came of them.
    expected_hosts: Outcomes | None = None
    #: Why nothing newer is known, or nothing at all.
    error: str | None = None


class Keys(Struct, frozen=True):
    """Placement keys in numbers."""

    #: Those that people set.
    keys: int
    #: VMs with a set of keys that they started with.
    frozen_sets: int
    sticky_copies: int


class ClusterStatus(Record, frozen=True, omit_defaults=False):
    """A cluster in numbers."""

    cluster: Named
    hosts: int
    hosts_up: int
    vms: int
    vms_running: int
    #: Migrating, or chosen for a host a moment ago.
    vms_on_their_way: int
    vms_highly_available: int
    groups: int
    hard_violations: int
    soft_violations: int


class StatusDocument(Document, frozen=True, kw_only=True, tag="status"):
    """What is known of each cluster, where from, and how fresh it is."""

    source: StateSource
    #: Whether disks, network interfaces or owners are still to be read that keys refer to.
    details_lacking: bool
    placement_keys: Keys
    clusters: tuple[ClusterStatus, ...]
    #: What is wrong in the configuration of other commands.
    mistakes: tuple[str, ...]

    @property
    def well(self) -> bool:
        """Whether the engine answers, and no section of the configuration is wrong."""
        return self.source.error is None and not self.mistakes


class KnownParts(Struct, frozen=True):
    """A state, where it is from, and its age if it is of old."""

    snapshot: Snapshot
    source: StateSource
    age_seconds: float | None = None


def status(known: KnownParts, clusters: Iterable[Cluster], mistakes: Iterable[str] = ()) -> StatusDocument:
    """What is known of these clusters; `mistakes` are those of the configuration."""
    snapshot = known.snapshot
    answer = StatusDocument(
        source=known.source,
        details_lacking=_details_are_lacking(known),
        placement_keys=Keys(
            keys=len(snapshot.placement_keys),
            frozen_sets=len(snapshot.frozen_keys),
            sticky_copies=len(snapshot.sticky_copies),
        ),
        clusters=tuple(_cluster(snapshot, cluster) for cluster in clusters),
        mistakes=tuple(mistakes),
    )
    return dated(answer, known.age_seconds)


def of_file(path: Path) -> KnownParts:
    """What a state file says. Raises `UserError` if it is none."""
    return KnownParts(snapshot=state_file.load(path), source=StateSource(kind="state file", where=str(path)))


def of_engine(config: Config, deadline: float) -> KnownParts:
    """What the inventory publishes, else the engine within `deadline` seconds, else what was known last."""
    where = config.engine.url or ""
    try:
        found = known_state(config, deadline=deadline, measured=inventory.Measured.NOTHING, stale=True)
    except inventory.NoSnapshot as error:
        return KnownParts(
            snapshot=_NOTHING, source=StateSource(kind="nothing", where=where, error=str(error))
        )
    snapshot, published = found.known
    if published is None:
        source = StateSource(kind="engine", where=where, expected_hosts=outcomes(config))
        return KnownParts(snapshot=snapshot, source=source)
    source = StateSource(
        kind="inventory",
        where=str(config.inventory.directory),
        version=published.version,
        age_seconds=published.engine_age_seconds,
        whole_age_seconds=published.whole_age_seconds,
        statistics_age_seconds=published.statistics_age_seconds,
        keys_age_seconds=published.keys_age_seconds,
        store_answers=published.store_answers,
        details_age_seconds=published.details_age_seconds,
        expected_hosts=outcomes(config),
        error=found.error,
    )
    return KnownParts(snapshot=snapshot, source=source, age_seconds=found.age_seconds)


def _cluster(snapshot: Snapshot, cluster: Cluster) -> ClusterStatus:
    hosts = snapshot.hosts_of_cluster.get(cluster.id, ())
    vms = [vm for vm in snapshot.vms if vm.cluster == cluster.id]
    violations = find_violations(snapshot, cluster.id)
    return ClusterStatus(
        cluster=Named(cluster.id, cluster.name),
        hosts=len(hosts),
        hosts_up=sum(host.up for host in hosts),
        vms=len(vms),
        vms_running=sum(vm.host is not None for vm in vms),
        vms_on_their_way=sum(vm.status == "migrating" or vm.id in snapshot.pending_hosts for vm in vms),
        vms_highly_available=sum(vm.ha for vm in vms),
        groups=sum(group.cluster == cluster.id for group in snapshot.affinity_groups),
        hard_violations=sum(violation.hard for violation in violations),
        soft_violations=sum(not violation.hard for violation in violations),
    )


def _details_are_lacking(known: KnownParts) -> bool:
    levels = (key.level for key in known.snapshot.placement_keys)
    published = known.source.kind == "inventory" and known.source.details_age_seconds is None
    return published and bool(referred(levels))


# -- in words


def lines(answer: StatusDocument) -> Iterator[str]:
    """Where all is known from, and how fresh it is."""
    source = answer.source
    if source.error is not None:
        yield f"{source.error[:1].upper()}{source.error[1:]}."
    if source.kind == "nothing":
        yield "Nothing is known of it here."
        return
    yield _source_text(source)
    yield _keys_text(answer.placement_keys, source)
    if source.expected_hosts is not None and any(source.expected_hosts):
        yield _expected_text(source.expected_hosts)
    if answer.details_lacking:
        yield "Disks, network interfaces or owners are being read: until then, keys on them have no effect."


def rows(answer: StatusDocument) -> list[tuple[str, ...]]:
    """Each cluster in numbers."""
    return [
        (
            one.cluster.name,
            f"{one.hosts_up} of {one.hosts}",
            f"{one.vms_running} of {one.vms}",
            str(one.vms_on_their_way),
            str(one.vms_highly_available),
            str(one.groups),
            f"{one.hard_violations} hard, {one.soft_violations} soft",
        )
        for one in answer.clusters
    ]


def _source_text(source: StateSource) -> str:
    text = f"Known from the {source.kind} {source.where}"
    if source.age_seconds is None:
        return f"{text}."
    ages = [f"asked what changed {source.age_seconds:.1f} s ago"]
    if source.whole_age_seconds is not None:
        ages.append(f"read whole {source.whole_age_seconds:.0f} s ago")
    if source.statistics_age_seconds is not None:
        ages.append(f"statistics {source.statistics_age_seconds:.0f} s ago")
    if source.details_age_seconds is not None:
        ages.append(f"what keys refer to {source.details_age_seconds:.0f} s ago")
    return f"{text}: {', '.join(ages)}."


def _keys_text(keys: Keys, source: StateSource) -> str:
    text = (
        f"Placement keys: {keys.keys}, frozen sets: {keys.frozen_sets}, sticky copies: {keys.sticky_copies}"
    )
    if source.keys_age_seconds is None:
        return f"{text}{'' if source.store_answers is None else ': the store could not be read yet'}."
    if not source.store_answers:
        return f"{text}: the store cannot be read, these are {source.keys_age_seconds:.0f} s old."
    return f"{text}: read from the store {source.keys_age_seconds:.1f} s ago."


def _expected_text(outcomes: Outcomes) -> str:
    return f"Expected placements: prediction: {outcomes.right} of {sum(outcomes)} correct."
