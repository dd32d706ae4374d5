"""The compiled placement keys of a VM or a host, level by level, and those that are ignored, and why."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated

from ovirt_placement.answers.document import Document, Table
from ovirt_placement.answers.keys import KeyRecord, Number, figure, key_title, where_mistaken, without_effect
from ovirt_placement.answers.question import (
    HOSTS,
    VMS,
    AuthoredState,
    Names,
    Parameter,
    Reads,
    Route,
    question,
)
from ovirt_placement.model import Host, Snapshot, Vm
from ovirt_placement.model.names import (
    LISTED,
    Named,
    NamedHost,
    NamedVm,
    UnmatchedName,
    clusters_of,
    gone_keys,
    resource_name,
    unmatched,
)
from ovirt_placement.model.record import (
    CLUSTER,
    NODE,
    SERVER,
    SYSTEM,
    From,
    Record,
    strength,
    with_names,
    written,
)
from ovirt_placement.rules.placement_keys.capacity import Source
from ovirt_placement.rules.placement_keys.hierarchy import find_mistakes, keys_by_resource, keys_of, resources
from ovirt_placement.rules.placement_keys.host_table import host_keys
from ovirt_placement.rules.placement_keys.keys import KeyKind, key_kind, settings_of
from ovirt_placement.rules.placement_keys.units import compiled_keys


# -- The compiled placement keys of a VM: where each comes from, and what it hides.
class Compiled(Record, frozen=True, omit_defaults=False):
    """A key that takes part, where it came from, and the weaker keys of its name that it hides."""

    name: str
    value: Number
    weight: Number
    source: KeyRecord
    hidden: tuple[KeyRecord, ...]


class Ignored(Record, frozen=True, omit_defaults=False):
    """A key that takes no part, and why."""

    codes: tuple[str, ...]
    sentence: str
    key: KeyRecord


class KeysOfVmDocument(Document, frozen=True, kw_only=True, tag="keys_of_vm"):
    """The compiled keys of a VM."""

    vm: NamedVm
    #: By name.
    system: Mapping[str, Compiled]
    customer: Mapping[str, Compiled]
    ignored: tuple[Ignored, ...]


def keys_of_vm(snapshot: Snapshot, vm: Vm) -> KeysOfVmDocument:
    return with_names(KeysOfVmDocument, compiled_keys(snapshot, vm.id), snapshot, vm=vm.id)


# -- in words
def vm_table(answer: KeysOfVmDocument) -> Table:
    lists = (("system", answer.system), ("customer", answer.customer))
    rows = [_vm_row(name, key) for name, keys in lists for key in keys.values()]
    return Table(rows, ("list", "name", "value", "weight", "from", "hides"), whole=True)


def _vm_row(keys: str, key: Compiled) -> tuple[str, ...]:
    hidden = (f"{one.place}: {written(one.value)} ({written(one.weight)})" for one in key.hidden)
    return keys, key.name, figure(key.value), figure(key.weight), key.source.place, "\n".join(hidden)


# -- The placement keys of a host: its own, those computed for it, and those that VMs on it brought.
_SOURCES = {Source.HOST: "its own", Source.POLICY: "the policy's", Source.CLUSTER: "the cluster's"}


class HostValue(Record, frozen=True, omit_defaults=False):
    """A value that a host has under a name, and how many VMs, or the host itself, bring it."""

    name: str
    value: Number
    count: int


class Ratio(Record, frozen=True, omit_defaults=False):
    """How often something may be handed out, and who says so."""

    value: Number
    source: Source


class Ratios(Record, frozen=True, omit_defaults=False):
    memory: Ratio
    cpu: Ratio


class KeysOfHostDocument(Document, frozen=True, kw_only=True, tag="keys_of_host"):
    """The keys of a host: its own, those computed for it, and those that VMs on it brought."""

    host: NamedHost
    system: tuple[HostValue, ...]
    customer: tuple[HostValue, ...]
    #: Those that VMs which start here take a copy of.
    sticky: tuple[KeyRecord, ...]
    ratios: Ratios


def shown_keys(snapshot: Snapshot, entity: Vm | Host) -> KeysOfVmDocument | KeysOfHostDocument:
    """The keys of a VM; or of a host, and how often its memory and CPUs may be handed out."""
    if isinstance(entity, Vm):
        return keys_of_vm(snapshot, entity)
    settings = settings_of(snapshot.cluster_by_id[entity.cluster].scheduling_properties)
    return with_names(KeysOfHostDocument, host_keys(snapshot, entity, settings), snapshot, host=entity.id)


# -- in words
def host_table(answer: KeysOfHostDocument) -> Table:
    sticky = {key.name for key in answer.sticky}
    rows = [
        (name, one.name, figure(one.value), str(one.count), "sticky" if copied and one.name in sticky else "")
        for name, values, copied in (("system", answer.system, True), ("customer", answer.customer, False))
        for one in values
    ]
    return Table(rows, ("list", "name", "value", "times", ""), whole=True)


def ratios_text(answer: KeysOfHostDocument) -> str:
    memory, cpu = answer.ratios.memory, answer.ratios.cpu
    return (
        f"Contention ratios: memory {figure(memory.value)} ({_SOURCES[memory.source]}),"
        f" CPUs {figure(cpu.value)} ({_SOURCES[cpu.source]})"
    )


_VM_OR_HOST = Names("VM or host", lambda snapshot, _: (*snapshot.vms, *snapshot.hosts), placed=True)


@question(
    "keys show",
    "the compiled keys of a VM or host",
    """\
Show the compiled keys of a VM, with the level of each and what it hides, or all keys of a host.
""",
    examples="  ovirt-placement keys show web1\n",
    text=lambda answer, _: _show_text(answer),
    reads=Reads.KEYS,
    routes=(
        Route("/vms/{name}/keys", "the placement keys that have a say about a VM", VMS, KeysOfVmDocument),
        Route("/hosts/{name}/keys", "the placement keys of a host", HOSTS, KeysOfHostDocument),
    ),
)
def keys_show(
    state: AuthoredState,
    item: Annotated[Vm | Host, Parameter("its name or id", "VM|HOST", _VM_OR_HOST, positional=True)],
) -> KeysOfVmDocument | KeysOfHostDocument:
    return shown_keys(state.snapshot, item)


def _show_text(answer: KeysOfVmDocument | KeysOfHostDocument) -> Iterator[str | Table]:
    if isinstance(answer, KeysOfHostDocument):
        yield host_table(answer)
        yield f"\n{ratios_text(answer)}"
        return
    table = vm_table(answer)
    yield table if table.rows else f"No keys have a say about VM {answer.vm.name}."
    yield from (f"\n{line}" for line in ignored_lines(answer))


def ignored_lines(answer: KeysOfVmDocument) -> Iterator[str]:
    return (f"ignored: {one.key.place}: {one.key.name}: {one.sentence}" for one in answer.ignored)


# -- The levels of a VM from the weakest to the strongest, and what becomes of the keys that stand on each.
class KeyState(StrEnum):
    IN_FORCE = "in force"
    OVERRIDDEN = "overridden"
    IGNORED = "ignored"


class KeyOfLevel(Record, frozen=True, omit_defaults=False):
    """A key, and what becomes of it; `by` is the key that overrides it, `because` why it is ignored."""

    key: KeyRecord
    state: KeyState
    by: KeyRecord | None
    because: str
    #: Whether a user has set it; else a property of the VM has it, or it is the copy of a sticky key.
    is_set: bool


class KeyLevel(Record, frozen=True, omit_defaults=False):
    """What stands on a level for a VM, and the keys that are set there."""

    level: str
    resource: Named
    keys: tuple[KeyOfLevel, ...]


def key_levels(snapshot: Snapshot, vm: Vm) -> tuple[KeyLevel, ...]:
    """All levels on which something stands for this VM, the weakest first; a later one wins."""
    # Copies of sticky keys stand where users set no keys.
    every = [*resources(snapshot, vm), *((key.level, key.resource) for key in keys_of(snapshot, vm))]
    places = sorted(dict.fromkeys(every), key=lambda place: strength(place[0]) or 0)
    stored = keys_by_resource(snapshot)
    are_set = [with_names(KeyRecord, key, snapshot) for place in places for key in stored.get(place, ())]
    found, states = keys_of_vm(snapshot, vm), list[KeyOfLevel]()

    def add(key: KeyRecord, state: KeyState, by: KeyRecord | None = None, because: str = "") -> None:
        states.append(KeyOfLevel(key, state, by, because, key in are_set))

    for one in (*found.system.values(), *found.customer.values()):
        add(one.source, KeyState.IN_FORCE)
        for key in one.hidden:
            add(key, KeyState.OVERRIDDEN, one.source)
    for mistaken in found.ignored:
        add(mistaken.key, KeyState.IGNORED, because=mistaken.sentence)
    return tuple(
        KeyLevel(
            level,
            Named(resource, resource_name(level, resource, snapshot)),
            tuple(one for one in states if (one.key.level, one.key.resource.id) == (level, resource)),
        )
        for level, resource in places
    )


# -- What is wrong with the placement keys that are set.
class KeyMistake(Record, frozen=True, omit_defaults=False, kw_only=True):
    """Something that is wrong; which of key, host and VM are not null depends on the codes."""

    codes: tuple[str, ...]
    where: Annotated[str, From(where_mistaken)]
    sentence: str
    key: KeyRecord | None = None
    host: NamedHost | None = None
    vm: NamedVm | None = None


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
    places = dict.fromkeys((key.level, key.resource) for key in snapshot.placement_keys)
    having = {one.id for place in places for one in clusters_of(*place, snapshot)}
    return KeysCheckDocument(
        mistakes=(
            *(with_names(KeyMistake, one, snapshot) for one in find_mistakes(snapshot)),
            *(
                KeyMistake(
                    codes=("resource-gone",),
                    where=key_title(key, snapshot),
                    sentence="the engine has no such object any more; keys prune removes it",
                    key=with_names(KeyRecord, key, snapshot),
                )
                for key in gone_keys(stored, snapshot, LISTED)
            ),
        ),
        # Clusters whose policies do not heed the keys there, and keys of VMs that no host has.
        notes=(
            *without_effect(cluster for cluster in snapshot.clusters if cluster.id in having),
            *(one.sentence for one in unmatched_keys(snapshot)),
        ),
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
        vm = snapshot.vm_by_id.get(key.resource) if key.level == SERVER else None
        # The cluster whose hosts it is held against; None where that may be any.
        of = vm.cluster if vm is not None else key.resource if key.level == CLUSTER else None
        there = carried[of]
        if key.name not in there:
            yield unmatched(key_title(key, snapshot), "host with the key", key.name, there)


# -- in words
def _check_text(answer: KeysCheckDocument) -> Iterator[str | Table]:
    if answer.mistakes:
        yield Table([(one.where, one.sentence) for one in answer.mistakes], ("where", "what is wrong"))
    yield from answer.notes or (() if answer.mistakes else ("No mistakes.",))
