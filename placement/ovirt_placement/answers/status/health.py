"""The question `status`: what the health of a placement is made of, and how fresh all is."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated

from msgspec.structs import replace

from ovirt_placement.answers.configured import (
    ConfiguredName,
    complaints,
    configured_names,
    tagged_in,
    unmatched_names,
)
from ovirt_placement.answers.document import Document, KnownState, Table, dated, known_state, table
from ovirt_placement.answers.proxy import ProxyRecord, ask_local_proxy
from ovirt_placement.answers.question import SOME_CLUSTERS, Reads, Route, question
from ovirt_placement.answers.rules import rules_check
from ovirt_placement.answers.status import EnforcementRecord, enforcement, enforcement_text
from ovirt_placement.answers.status.clusters import (
    CLUSTER_COLUMNS,
    ClusterStatus,
    Health,
    cluster_status,
    judge,
)
from ovirt_placement.config import Config
from ovirt_placement.inventory.decision import NoSnapshot
from ovirt_placement.inventory.on_demand import referred
from ovirt_placement.inventory.publication import age
from ovirt_placement.model import NO_STATE, Cluster, Snapshot, Struct, state_file
from ovirt_placement.model.names import UnmatchedName, counted


# -- The health of a placement: rules and HA reservation of each cluster, the enforcer, how fresh all is.
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
    #: Since the engine last answered all searches of placement rules.
    searches_age_seconds: float | None = None
    #: Why nothing newer is known, or nothing at all.
    error: str | None = None


class Keys(Struct, frozen=True):
    """Placement keys in numbers."""

    #: Those that people set.
    keys: int
    #: VMs with a set of keys that they started with.
    frozen_sets: int
    sticky_copies: int


class RuleNumbers(Struct, frozen=True):
    """Placement rules in numbers."""

    rules: int = 0
    #: What is wrong with them: `rules check` says what.
    problems: int = 0


class StatusDocument(Document, frozen=True, kw_only=True, tag="status"):
    """The health of a placement, and what it is made of."""

    #: healthy, degraded or unhealthy.
    health: Health
    #: Why it is not healthy, the worst first.
    reasons: tuple[str, ...]
    source: StateSource
    #: Whether disks, network interfaces or owners are still to be read that keys refer to.
    details_lacking: bool
    placement_keys: Keys
    placement_rules: RuleNumbers
    clusters: tuple[ClusterStatus, ...]
    #: Null of a state file.
    enforcer: EnforcementRecord | None
    #: Null where this machine has no configuration of one.
    proxy: ProxyRecord | None
    #: What is wrong in the configuration of other commands.
    mistakes: tuple[str, ...]
    #: Names of the configuration, of rules, keys and policies that match nothing: what they are to do is not
    #: done.
    unmatched_names: tuple[UnmatchedName, ...]


class HealthState(Struct, frozen=True):
    """A state, where it is from, and its age if it is of old; and what this machine says besides."""

    snapshot: Snapshot
    source: StateSource
    age_seconds: float | None = None
    #: What is wrong in the configuration, and what it names.
    mistakes: tuple[str, ...] = ()
    names: tuple[ConfiguredName, ...] = ()
    enforcer: EnforcementRecord | None = None
    proxy: ProxyRecord | None = None


_STATUSES = {Health.HEALTHY: 0, Health.DEGRADED: 3, Health.UNHEALTHY: 1}


@question(
    "status",
    "the health of clusters, rules and enforcer",
    """\
Show the health in one word with its reasons: rules, HA reservation, enforcer, and how old the state is.
The exit status is 0 if healthy, 3 if degraded (hard rules are violated, or nothing repairs them), and 1 if
unhealthy (the engine is away, a section of the configuration is wrong, or highly available VMs would not
all restart).
""",
    examples="""\
  ovirt-placement status --json --timeout 5      # for a monitor
""",
    text=lambda answer, _: _status_text(answer),
    status=lambda answer, _: _STATUSES[answer.health],
    reads=Reads.HEALTH,
    routes=(Route("/status", "the health in one word, and what it is made of"),),
)
def status(known: HealthState, clusters: Annotated[Iterable[Cluster], SOME_CLUSTERS]) -> StatusDocument:
    snapshot = known.snapshot
    numbers = tuple(cluster_status(snapshot, cluster.id) for cluster in clusters)
    rules = rules_check(snapshot)
    tagged = tagged_in(snapshot, known.names) if known.source.kind == "state file" else None
    unmatched = unmatched_names(snapshot, known.names, tagged) if known.source.kind != "nothing" else ()
    unread = known.source.kind == "inventory" and known.source.details_age_seconds is None
    parts = known.source.error, known.mistakes, numbers, known.enforcer, known.proxy
    health, reasons = judge(*parts, len(rules.problems), unmatched, snapshot.vms)
    answer = StatusDocument(
        health=health,
        reasons=reasons,
        source=known.source,
        details_lacking=unread and bool(referred(key.level for key in snapshot.placement_keys)),
        placement_keys=Keys(
            keys=len(snapshot.placement_keys),
            frozen_sets=len(snapshot.frozen_keys),
            sticky_copies=len(snapshot.sticky_copies),
        ),
        placement_rules=RuleNumbers(rules=rules.rules, problems=len(rules.problems)),
        clusters=numbers,
        enforcer=known.enforcer,
        proxy=known.proxy,
        mistakes=known.mistakes,
        unmatched_names=unmatched,
    )
    return dated(answer, known.age_seconds)


def health_of_file(path: Path, configuration: Config | None) -> HealthState:
    """What a state file says, and what a configuration names. Raises `UserError` if it is none."""
    return HealthState(
        snapshot=state_file.load(path),
        source=StateSource(kind="state file", where=str(path)),
        names=() if configuration is None else configured_names(configuration),
    )


def health_of_engine(config: Config, deadline: float) -> HealthState:
    """What the inventory publishes, else the engine within `deadline` seconds, else what was known last."""
    try:
        known = health_of_known(config, known_state(config, deadline=deadline, stale=True))
    except NoSnapshot as error:
        known = nothing_known(config, str(error))
    return with_machine(known, config)


def with_machine(
    known: HealthState,
    config: Config,
    read_enforcer: Callable[[Config, Snapshot], EnforcementRecord] = enforcement,
) -> HealthState:
    """With what the configuration, the store and the proxy of this machine say."""
    mistakes = tuple(complaints(config))
    return replace(
        known,
        mistakes=mistakes,
        names=configured_names(config),
        enforcer=None if mistakes else read_enforcer(config, known.snapshot),
        proxy=ask_local_proxy(config.engine.name),
    )


def nothing_known(config: Config, error: str) -> HealthState:
    source = StateSource(kind="nothing", where=config.engine.address, error=error)
    return HealthState(snapshot=NO_STATE, source=source)


def health_of_known(config: Config, found: KnownState) -> HealthState:
    snapshot, published = found.known
    if published is None:
        source = StateSource(kind="engine", where=config.engine.address, error=found.error)
        return HealthState(snapshot=snapshot, source=source, age_seconds=found.age_seconds)
    source = StateSource(
        kind="inventory",
        where=str(config.inventory.directory),
        version=published.version,
        age_seconds=age(published.moments.read_at),
        whole_age_seconds=age(published.moments.whole_at),
        statistics_age_seconds=age(published.moments.statistics_at),
        keys_age_seconds=age(published.moments.keys_at),
        store_answers=published.moments.store_answers,
        details_age_seconds=age(published.moments.details_at),
        searches_age_seconds=age(published.moments.searches_at),
        error=found.error,
    )
    return HealthState(snapshot=snapshot, source=source, age_seconds=found.age_seconds)


# -- in words
def _status_text(answer: StatusDocument) -> Iterator[str | Table]:
    yield from status_lines(answer)
    if answer.source.kind != "nothing":
        yield ""
        columns = table(answer.clusters, CLUSTER_COLUMNS, whole=True)
        yield columns if answer.clusters else "There is no cluster."


def status_lines(answer: StatusDocument) -> Iterator[str]:
    """Health with its reasons, the enforcer, where all is known from, and how fresh it is."""
    source = answer.source
    said = answer.health.capitalize() + (f": {'; '.join(answer.reasons)}" if answer.reasons else "")
    yield said if said.endswith("?") else f"{said}."
    if answer.enforcer is not None:
        yield from enforcement_text(answer.enforcer)
    if answer.proxy is not None:
        yield _proxy_text(answer.proxy)
    using = [one.cluster.name for one in answer.clusters if one.units]
    if answer.enforcer is not None and answer.clusters:
        yield f"Scheduling policies with our units: {', '.join(using) or 'of no cluster'}."
    if source.kind == "nothing":
        yield "Nothing is known of it here."
        return
    yield _source_text(source)
    yield _keys_text(answer.placement_keys, source)
    if answer.placement_rules.rules:
        mistakes = answer.placement_rules.problems
        yield f"Placement rules: {answer.placement_rules.rules}, mistakes in them: {mistakes}."
    yield from (f"Matches nothing: {one.sentence}" for one in answer.unmatched_names)
    for status in answer.clusters:
        if names := ", ".join(host.name for host in status.draining):
            marked = f"Marked as draining in cluster {status.cluster.name}, no VM is placed there: {names}"
            yield f"{marked} (ovirt-enforcer maintenance status)."
    if answer.details_lacking:
        yield "Disks, network interfaces or owners are being read: until then, keys on them have no effect."


def _proxy_text(proxy: ProxyRecord) -> str:
    if proxy.url is None:
        return f"Proxy: {proxy.error}."
    if proxy.error is not None:
        return f"Proxy at {proxy.url}: does not answer: {proxy.error}."
    return f"Proxy at {proxy.url}: answers, {counted(len(proxy.units), 'unit')}."


def _source_text(source: StateSource) -> str:
    text = f"Known from the {source.kind} {source.where}"
    if source.age_seconds is None:
        return f"{text}."
    ages = {
        "read whole": source.whole_age_seconds,
        "statistics": source.statistics_age_seconds,
        "what keys refer to": source.details_age_seconds,
        "searches of rules": source.searches_age_seconds,
    }
    known = [f"{what} {seconds:.0f} s ago" for what, seconds in ages.items() if seconds is not None]
    return f"{text}: {', '.join((f'asked what changed {source.age_seconds:.1f} s ago', *known))}."


def _keys_text(keys: Keys, source: StateSource) -> str:
    text = (
        f"Placement keys: {keys.keys}, frozen sets: {keys.frozen_sets}, sticky copies: {keys.sticky_copies}"
    )
    if source.keys_age_seconds is None:
        return f"{text}{'' if source.store_answers is None else ': the store could not be read yet'}."
    if not source.store_answers:
        return f"{text}: the store cannot be read, these are {source.keys_age_seconds:.0f} s old."
    return f"{text}: read from the store {source.keys_age_seconds:.1f} s ago."
