"""The compiled placement keys of a VM or a host, level by level, and how they place a VM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from fractions import Fraction

from msgspec.structs import asdict

from ovirt_placement.answers.document import Document, Unit, listed, unit_names
from ovirt_placement.answers.keys import key
from ovirt_placement.answers.keys.key import (
    HostKeys,
    KeyRecord,
    code_sentence,
    figure,
    host_keys,
    key_record,
    score_cells,
    without_effect,
    written,
    written_weight,
)
from ovirt_placement.model import Host, PlacementKey, Snapshot, Vm
from ovirt_placement.model.key_resources import resource_name
from ovirt_placement.model.names import Named, host_name, named_cluster, named_host, named_hosts
from ovirt_placement.model.placement_keys import strength
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys import key_filter
from ovirt_placement.rules.placement_keys.capacity import Shortage, Source, contention_of_host
from ovirt_placement.rules.placement_keys.compile import CompiledKey
from ovirt_placement.rules.placement_keys.hierarchy import keys_by_resource, keys_of, resources
from ovirt_placement.rules.placement_keys.host_keys import Values
from ovirt_placement.rules.placement_keys.host_table import keys_of_host as host_table_keys
from ovirt_placement.rules.placement_keys.judgement import KeyDecision, KeyFailure
from ovirt_placement.rules.placement_keys.placing import compiled_keys, decide_vm
from ovirt_placement.rules.placement_keys.settings import settings_of
from ovirt_placement.rules.scheduling.judging import judge

# -- The compiled placement keys of a VM: where each comes from, and what it hides.


VM_HEADERS = ("list", "name", "value", "weight", "from", "hides")


class Compiled(Record, frozen=True, omit_defaults=False):
    """A key that takes part, where it came from, and the weaker keys of its name that it hides."""

    name: str
    value: float
    weight: float
    source: KeyRecord
    hidden: tuple[KeyRecord, ...]


class Ignored(Record, frozen=True, omit_defaults=False):
    """A key that takes no part, and why."""

    codes: tuple[str, ...]
    sentence: str
    key: KeyRecord


class KeysOfVmDocument(Document, frozen=True, kw_only=True, tag="keys_of_vm"):
    """The compiled keys of a VM."""

    vm: Named
    #: By name.
    system: Mapping[str, Compiled]
    customer: Mapping[str, Compiled]
    ignored: tuple[Ignored, ...]


def keys_of_vm(snapshot: Snapshot, vm: Vm) -> KeysOfVmDocument:
    """The keys that have a say about a VM, and those that have none."""
    keys = compiled_keys(snapshot, vm.id)
    return KeysOfVmDocument(
        vm=Named(vm.id, vm.name),
        system={key.name: _compiled(key, snapshot) for key in keys.system.values()},
        customer={key.name: _compiled(key, snapshot) for key in keys.customer.values()},
        ignored=tuple(
            Ignored(tuple(one.codes), "; ".join(map(code_sentence, one.codes)), key_record(one.key, snapshot))
            for one in keys.ignored
        ),
    )


def _compiled(key: CompiledKey, snapshot: Snapshot) -> Compiled:
    return Compiled(
        name=key.name,
        value=float(key.value),
        weight=float(key.weight),
        source=key_record(key.source, snapshot),
        hidden=tuple(key_record(one, snapshot) for one in key.hidden),
    )


# -- in words


def vm_rows(answer: KeysOfVmDocument) -> list[tuple[str, ...]]:
    """The keys of both lists, with the level that each comes from and what it hides there."""
    return [
        *(_vm_row("system", key) for key in answer.system.values()),
        *(_vm_row("customer", key) for key in answer.customer.values()),
    ]


def ignored_lines(answer: KeysOfVmDocument) -> Iterator[str]:
    """The keys that take no part, and why."""
    for one in answer.ignored:
        yield f"ignored: {one.key.place}: {one.key.name}: {one.sentence}"


def _vm_row(keys: str, key: Compiled) -> tuple[str, ...]:
    hidden = (f"{one.place}: {written(one.value)} ({written_weight(one.weight)})" for one in key.hidden)
    return keys, key.name, figure(key.value), figure(key.weight), key.source.place, "\n".join(hidden)


# -- The placement keys of a host: its own, those computed for it, and those that VMs on it brought.


HOST_HEADERS = ("list", "name", "value", "times", "")

_SOURCES = {
    Source.HOST: "its own",
    Source.POLICY: "the policy's",
    Source.CLUSTER: "the cluster's",
}


class HostValue(Record, frozen=True, omit_defaults=False):
    """A value that a host has under a name, and how many VMs, or the host itself, bring it."""

    name: str
    value: float
    count: int


class Ratio(Record, frozen=True, omit_defaults=False):
    """How often something may be handed out, and who says so."""

    value: float
    source: Source


class Ratios(Record, frozen=True, omit_defaults=False):
    memory: Ratio
    cpu: Ratio


class KeysOfHostDocument(Document, frozen=True, kw_only=True, tag="keys_of_host"):
    """The keys of a host: its own, those computed for it, and those that VMs on it brought."""

    host: Named
    system: tuple[HostValue, ...]
    customer: tuple[HostValue, ...]
    #: Those that VMs which start here take a copy of.
    sticky: tuple[KeyRecord, ...]
    ratios: Ratios


def keys_of_host(snapshot: Snapshot, host: Host) -> KeysOfHostDocument:
    """The keys of a host, and how often its memory and CPUs may be handed out."""
    settings = settings_of(snapshot.cluster_by_id[host.cluster].scheduling_properties)
    ratios = contention_of_host(snapshot, host, settings)
    keys = host_table_keys(snapshot, host, settings)
    return KeysOfHostDocument(
        host=Named(host.id, host.name),
        system=tuple(_values(keys.system)),
        customer=tuple(_values(keys.customer)),
        sticky=tuple(key_record(key, snapshot) for key in keys.sticky),
        ratios=Ratios(
            memory=Ratio(float(ratios.memory), ratios.memory_source),
            cpu=Ratio(float(ratios.cpu), ratios.cpu_source),
        ),
    )


def _values(values: Values) -> Iterator[HostValue]:
    """By name and value, each value with the number of VMs (or the host itself) that bring it."""
    for name in sorted(values):
        for ratio, count in sorted(values[name], key=lambda found: Fraction(*found[0])):
            yield HostValue(name, float(Fraction(*ratio)), count)


# -- in words


def host_rows(answer: KeysOfHostDocument) -> list[tuple[str, ...]]:
    """Each value of both lists, and whether VMs that start there take a copy."""
    sticky = {key.name for key in answer.sticky}
    return [
        *(
            ("system", one.name, figure(one.value), str(one.count), "sticky" if one.name in sticky else "")
            for one in answer.system
        ),
        *(("customer", one.name, figure(one.value), str(one.count), "") for one in answer.customer),
    ]


def ratios_text(answer: KeysOfHostDocument) -> str:
    """How often memory and CPUs may be handed out, and who says so."""
    memory, cpu = answer.ratios.memory, answer.ratios.cpu
    return (
        f"Contention ratios: memory {figure(memory.value)} ({_SOURCES[memory.source]}),"
        f" CPUs {figure(cpu.value)} ({_SOURCES[cpu.source]})"
    )


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
    #: Whether somebody has set it; else a property of the VM has it, or it is the copy of a sticky key.
    is_set: bool


class KeyLevel(Record, frozen=True, omit_defaults=False):
    """What stands on a level for a VM, and the keys that are set there."""

    level: str
    resource: Named
    keys: tuple[KeyOfLevel, ...]


def key_levels(snapshot: Snapshot, vm: Vm) -> tuple[KeyLevel, ...]:
    """All levels on which something stands for this VM, the weakest first; a later one wins."""
    states = _states(snapshot, vm)
    # Copies of sticky keys stand where nobody sets keys.
    every = [*resources(snapshot, vm), *((key.level, key.resource) for key in keys_of(snapshot, vm))]
    places = sorted(dict.fromkeys(every), key=lambda place: strength(place[0]) or 0)
    return tuple(
        KeyLevel(
            level,
            Named(resource, resource_name(level, resource, snapshot)),
            tuple(of for key, of in states if (key.level, key.resource) == (level, resource)),
        )
        for level, resource in places
    )


def _states(snapshot: Snapshot, vm: Vm) -> list[tuple[PlacementKey, KeyOfLevel]]:
    compiled, stored = compiled_keys(snapshot, vm.id), keys_by_resource(snapshot)

    def of(
        key: PlacementKey, state: KeyState, by: KeyRecord | None = None, because: str = ""
    ) -> tuple[PlacementKey, KeyOfLevel]:
        is_set = key in stored.get((key.level, key.resource), ())
        return key, KeyOfLevel(key_record(key, snapshot), state, by, because, is_set)

    found = []
    for one in (*compiled.system.values(), *compiled.customer.values()):
        wins = key_record(one.source, snapshot)
        found.append(of(one.source, KeyState.IN_FORCE))
        found += [of(key, KeyState.OVERRIDDEN, wins) for key in one.hidden]
    for mistaken in compiled.ignored:
        found.append(
            of(mistaken.key, KeyState.IGNORED, because="; ".join(map(code_sentence, mistaken.codes)))
        )
    return found


# -- One placement by keys, step by step and host by host.


_KEY_FILTER = key_filter.RULE.name

EXPLAIN_HEADERS = ("host", *key.SCORE_HEADERS, "")

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


def keys_explain(snapshot: Snapshot, vm: Vm, *, whole: bool = True) -> KeysExplainDocument:
    """How keys place a VM among the other hosts that all other filters accept.

    Unless `whole`, the sentence names no more hosts than a person reads.
    """
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


def explain_rows(answer: KeysExplainDocument) -> list[tuple[str, ...]]:
    """How far each host comes, and whether it is chosen."""
    choice = {host.id for host in answer.choice}
    return [_explain_row(one, chosen=one.host.id in choice) for one in answer.hosts]


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
