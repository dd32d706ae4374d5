"""The placement keys that are set, what is wrong with them, and how they place a VM, host by host."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated

from msgspec.structs import asdict

from ovirt_placement.answers.document import Document, Unit, listed, unit_names
from ovirt_placement.answers.keys import (
    SCORE_HEADERS,
    HostKeys,
    KeyRecord,
    figure,
    host_keys,
    key_record,
    key_title,
    key_words,
    mistake_place,
    mistake_sentence,
    score_cells,
    unmatched_keys,
    without_effect,
    written,
    written_weight,
)
from ovirt_placement.answers.question import (
    VMS,
    AuthoredState,
    Columns,
    Parameter,
    Reads,
    Route,
    Table,
    question,
    table,
)
from ovirt_placement.model import PlacementKey, Snapshot, Vm
from ovirt_placement.model.names import (
    LISTED,
    Named,
    clusters_of,
    find_place,
    gone_keys,
    host_name,
    named_cluster,
    named_host,
    named_hosts,
    named_vm,
    with_names,
)
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.capacity import Shortage
from ovirt_placement.rules.placement_keys.hierarchy import (
    MissingNodeKeys,
    Mistake,
    MistakenKey,
    UnreadableProperty,
    find_mistakes,
)
from ovirt_placement.rules.placement_keys.judgement import KeyDecision, KeyFailure
from ovirt_placement.rules.placement_keys.keys import settings_of
from ovirt_placement.rules.placement_keys.units import KEY_FILTER, decide_vm
from ovirt_placement.rules.scheduling import judge
from ovirt_placement.store import keys as store
from ovirt_placement.store.keys import KeyPlace

# -- What is wrong with the placement keys that are set.
_GONE = "resource-gone"
_GONE_SENTENCE = "the engine has no such object any more; keys prune removes it"


class KeyMistake(Record, frozen=True, omit_defaults=False, kw_only=True):
    """Something that is wrong; which of key, host and VM are not null depends on the codes."""

    codes: tuple[str, ...]
    where: str
    sentence: str
    key: KeyRecord | None = None
    host: Named | None = None
    vm: Named | None = None


class KeysCheckDocument(Document, frozen=True, kw_only=True, tag="keys_check"):
    """What is wrong with the keys that are set."""

    mistakes: tuple[KeyMistake, ...]
    #: Why keys without a mistake count for less, or for nothing, in sentences.
    notes: tuple[str, ...]


@question(
    "keys check",
    "keys that are ignored, and why",
    """\
List keys that are ignored, and why: mistakes, hosts that lack a key of their cluster, objects that are gone.
The exit status is 1 if there is any.
""",
    examples="  ovirt-placement keys check --keys keys.yaml      # before they are imported\n",
    text=lambda answer, _: _check_text(answer),
    status=lambda answer, _: int(bool(answer.mistakes)),
    reads=Reads.KEYS,
)
def keys_check(state: AuthoredState) -> KeysCheckDocument:
    """The mistakes of a state, and of the keys that are stored those whose objects are gone."""
    snapshot, stored = state.snapshot, (one.key for one in state.authors.values())
    mistakes = (_mistake(one, snapshot) for one in find_mistakes(snapshot))
    gone = (_gone(key, snapshot) for key in gone_keys(stored, snapshot, LISTED))
    return KeysCheckDocument(mistakes=(*mistakes, *gone), notes=tuple(_notes(snapshot)))


def _mistake(mistake: Mistake, snapshot: Snapshot) -> KeyMistake:
    return KeyMistake(
        codes=tuple(mistake.codes),
        where=mistake_place(mistake, snapshot),
        sentence=mistake_sentence(mistake),
        key=key_record(mistake.key, snapshot) if isinstance(mistake, MistakenKey) else None,
        host=named_host(mistake.host, snapshot) if isinstance(mistake, MissingNodeKeys) else None,
        vm=named_vm(mistake.vm, snapshot) if isinstance(mistake, UnreadableProperty) else None,
    )


def _gone(key: PlacementKey, snapshot: Snapshot) -> KeyMistake:
    return KeyMistake(
        codes=(_GONE,), where=key_title(key, snapshot), sentence=_GONE_SENTENCE, key=key_record(key, snapshot)
    )


def _notes(snapshot: Snapshot) -> Iterator[str]:
    """Clusters whose policies do not heed the keys there, and keys of VMs that no host has."""
    places = dict.fromkeys((key.level, key.resource) for key in snapshot.placement_keys)
    having = {one.id for place in places for one in clusters_of(*place, snapshot)}
    yield from without_effect(cluster for cluster in snapshot.clusters if cluster.id in having)
    yield from (one.sentence for one in unmatched_keys(snapshot))


# -- in words
def _check_text(answer: KeysCheckDocument) -> Iterator[str | Table]:
    if answer.mistakes:
        yield Table([(one.where, one.sentence) for one in answer.mistakes], ("where", "what is wrong"))
    yield from answer.notes or (() if answer.mistakes else ("No mistakes.",))


# -- The placement keys that are set, by whom and when.
class SetKey(KeyRecord, frozen=True, omit_defaults=False, kw_only=True):
    """A key, who set it and when (ISO 8601, in UTC); null where that is not known."""

    set_by: str | None
    set_at: str | None


class KeysListDocument(Document, frozen=True, kw_only=True, tag="keys_list"):
    """The keys that are set."""

    keys: tuple[SetKey, ...]


@question(
    "keys list",
    "the keys that are set",
    """\
List placement keys: the class (system: the operator's; be: a billing entity's; customer), what each is set
on, who set it and when.
""",
    examples="  ovirt-placement keys list --on cluster blue\n",
    text=lambda answer, _: [keys_table(answer) if answer.keys else "No keys."],
    reads=Reads.KEYS,
    routes=(Route("/keys", "the placement keys that are set"),),
)
def keys_list(
    state: AuthoredState,
    *,
    name: Annotated[str | None, Parameter(help="only keys of this name", metavar="NAME")] = None,
    on: Annotated[
        Sequence[str] | None,
        Parameter(
            help="only keys of this level, or of this object",
            metavar=("LEVEL", "RESOURCE"),
            argument={"nargs": "+"},
        ),
    ] = None,
) -> KeysListDocument:
    """The keys of a store, also of objects that are gone; without any, those of the state.

    Of them, those of this name, and on this level and object. Raises `UserError` if these are not known.
    """
    snapshot, authors = state
    known = [one.key for one in authors.values()] or snapshot.placement_keys
    wanted = None if on is None else find_place(on, known, snapshot)
    keys = [
        _set_key(key, authors.get(KeyPlace.of_key(key)), snapshot)
        for key in known
        if name in (None, key.name)
        and (wanted is None or (key.level == wanted.level and wanted.resource in (None, key.resource)))
    ]
    keys.sort(key=lambda one: (one.level, one.name, one.place, one.key_class))
    return KeysListDocument(keys=tuple(keys))


def _set_key(key: PlacementKey, author: store.SetKey | None, snapshot: Snapshot) -> SetKey:
    at = None if author is None else datetime.fromtimestamp(author.set_at, UTC).isoformat(timespec="seconds")
    by = author and author.set_by
    return with_names(SetKey, key, snapshot, **key_words(key, snapshot), set_by=by, set_at=at)


# -- in words
_COLUMNS: Columns = {
    "on": lambda one: one.place,
    "class": lambda one: one.key_class,
    "name": lambda one: one.name,
    "value": lambda one: written(one.value),
    "weight": lambda one: written_weight(one.weight),
    "kind": lambda one: one.kind,
}
_AUTHORS: Columns = {"set by": lambda one: one.set_by, "set at": lambda one: one.set_at}


def keys_table(answer: KeysListDocument) -> Table:
    """Who set the keys stands there where it is known."""
    authored = any(one.set_at is not None for one in answer.keys)
    return table(answer.keys, {**_COLUMNS, **(_AUTHORS if authored else {})})


# -- One placement by keys, step by step and host by host.
_KEY_FILTER = KEY_FILTER.name


_SHORTAGES = {
    Shortage.NOT_UP: "is not up",
    Shortage.UNCONTENDED: "{there} MiB not handed out, {need} must fit with some to spare",
    Shortage.CONTENDED: "{there} MiB physically free, {need} must fit with some to spare",
}
_OTHERS = "Other filters refuse every host: keys have nothing to choose from."
_FAILURES = {
    KeyFailure.CONSTRAINT: "No host is capable of running it.",
    KeyFailure.THRESHOLD: "No host's score is above the last threshold, {final}.",
}


class HostPlace(HostKeys, frozen=True, omit_defaults=False, kw_only=True):
    """A host in one placement: how far it comes by keys, and which other filters refuse it."""

    host: Named
    refused_by: tuple[Unit, ...]


class KeysExplainDocument(Document, frozen=True, kw_only=True, tag="keys_explain"):
    """One placement by keys, among the hosts that all other filters accept."""

    vm: Named
    cluster: Named
    #: Where the VM runs now.
    host: Named | None
    #: What the scores have to exceed in each round.
    thresholds: tuple[float, ...]
    #: The first round that any host passed.
    round: int | None
    #: The hosts that passed it, and of these the best.
    candidates: tuple[Named, ...]
    choice: tuple[Named, ...]
    failed: KeyFailure | None
    #: Whether its storage binds the VM to a host, so that keys have no say.
    local_storage: bool
    sentence: str
    #: What the policy lacks for keys to count, in a sentence.
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
    vm: Annotated[Vm, Parameter(help="its name or id", metavar="VM", names=VMS, positional=True)],
    *,
    whole: Annotated[bool, Parameter(common="all")] = True,
) -> KeysExplainDocument:
    """How keys place a VM among the other hosts that all other filters accept.

    Unless `whole`, the sentence names no more hosts than a person reads.
    """
    snapshot = state.snapshot
    hosts = snapshot.hosts_of_cluster.get(vm.cluster, ())
    asked = tuple(host.id for host in hosts if host.id != vm.host)
    settings = settings_of(snapshot.cluster_by_id[vm.cluster].scheduling_properties)
    refused = _refused(snapshot, vm)
    left = [host for host in asked if host not in refused]
    every = decide_vm(snapshot, vm, asked, settings)
    decision = every if every.failed is not None else decide_vm(snapshot, vm, left, settings)
    others = every.failed is None and not left
    return KeysExplainDocument(
        vm=Named(vm.id, vm.name),
        cluster=named_cluster(vm.cluster, snapshot),
        host=None if vm.host is None else named_host(vm.host, snapshot),
        thresholds=tuple(map(float, decision.thresholds)),
        round=decision.round,
        candidates=named_hosts(decision.candidates, snapshot),
        choice=named_hosts(decision.choice, snapshot),
        failed=decision.failed,
        local_storage=decision.local_storage,
        sentence=_OTHERS if others else _outcome(decision, snapshot, whole=whole),
        notes=tuple(without_effect([snapshot.cluster_by_id[vm.cluster]])),
        hosts=tuple(_places(every, refused, snapshot)),
    )


def _refused(snapshot: Snapshot, vm: Vm) -> dict[str, tuple[Unit, ...]]:
    """The hosts of a VM's cluster that other filters than that of keys refuse, each with those filters."""
    found: dict[str, tuple[Unit, ...]] = {}
    for host in judge(snapshot, vm, snapshot.hosts_of_cluster.get(vm.cluster, ())).hosts:
        vetoes = (rule for reason, rules in host.reasons if reason.kind.veto for rule in rules)
        if others := dict.fromkeys(rule for rule in vetoes if not rule.ours or rule.name != _KEY_FILTER):
            found[host.host] = tuple(Unit(rule.name, not rule.ours) for rule in others)
    return found


def _places(
    every: KeyDecision, refused: Mapping[str, tuple[Unit, ...]], snapshot: Snapshot
) -> Iterator[HostPlace]:
    for one in every.hosts:
        yield HostPlace(
            **asdict(host_keys(one)),
            host=named_host(one.host, snapshot),
            refused_by=refused.get(one.host, ()),
        )


def _outcome(decision: KeyDecision, snapshot: Snapshot, *, whole: bool) -> str:
    """Which hosts are chosen from."""
    names = listed([host_name(host, snapshot) for host in decision.choice], " or ", whole=whole)
    if decision.local_storage:
        return f"Its storage is local, so that keys do not count: {names}."
    if decision.failed is not None or decision.round is None:
        return _FAILURES[decision.failed or KeyFailure.CONSTRAINT].format(
            final=figure(decision.thresholds[-1])
        )
    above = figure(decision.thresholds[decision.round - 1])
    drawn = ", by lot" if len(decision.choice) > 1 else ""
    return f"Round {decision.round} (above {above}): {names}{drawn}."


# -- in words
def _explain_text(answer: KeysExplainDocument) -> Iterator[str | Table]:
    """How far each host comes, and whether it is chosen."""
    choice = {host.id for host in answer.choice}
    if rows := [_explain_row(one, chosen=one.host.id in choice) for one in answer.hosts]:
        yield Table(rows, ("host", *SCORE_HEADERS, ""))
        yield ""
    yield from (answer.sentence, *answer.notes)


def _explain_row(one: HostPlace, *, chosen: bool) -> tuple[str, ...]:
    if one.system is None:
        return one.host.name, "\n".join(_lacking(one)), "", "", "", "", "no room"
    if one.refused_by:
        return one.host.name, *score_cells(one), f"refused by {unit_names(one.refused_by)}"
    return one.host.name, *score_cells(one), "chosen" if chosen else "" if one.round else "refused"


def _lacking(one: HostPlace) -> Iterator[str]:
    figures = {
        Shortage.NOT_UP: ("", 0),
        Shortage.UNCONTENDED: (figure(one.uncontended_mb), one.uncontended_need_mb),
        Shortage.CONTENDED: (str(one.contended_mb), one.contended_need_mb),
    }
    for shortage in one.shortages:
        there, need = figures[shortage]
        yield _SHORTAGES[shortage].format(there=there, need=need)
