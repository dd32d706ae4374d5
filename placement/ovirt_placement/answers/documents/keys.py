"""The answers of `ovirt-placement keys` as data, but for `export`, which prints a file of keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.key_scores import HostKeys, host_keys
from ovirt_placement.answers.key_sentences import code_sentence, key_place, key_title
from ovirt_placement.answers.sentences import Unit
from ovirt_placement.model import PlacementKey, Snapshot, Vm
from ovirt_placement.model.key_resources import resource_name
from ovirt_placement.model.names import Named, named_cluster, named_host, named_hosts
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.compile import CompiledKey, CompiledKeys
from ovirt_placement.rules.placement_keys.contention import Contention, Source
from ovirt_placement.rules.placement_keys.decision import Decision, Failure
from ovirt_placement.rules.placement_keys.keys import KeyKind, key_kind


class Key(Record, frozen=True, omit_defaults=False, kw_only=True):
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


class SetKey(Key, frozen=True, omit_defaults=False, kw_only=True):
    """A key, who set it and when (ISO 8601, in UTC); null where that is not known."""

    set_by: str | None
    set_at: str | None


class KeyMistake(Record, frozen=True, omit_defaults=False, kw_only=True):
    """Something that is wrong; which of key, host and VM are not null depends on the codes."""

    codes: tuple[str, ...]
    where: str
    sentence: str
    key: Key | None = None
    host: Named | None = None
    vm: Named | None = None


class Compiled(Record, frozen=True, omit_defaults=False):
    """A key that takes part, where it came from, and the weaker keys of its name that it hides."""

    name: str
    value: float
    weight: float
    source: Key
    hidden: tuple[Key, ...]


class Ignored(Record, frozen=True, omit_defaults=False):
    """A key that takes no part, and why."""

    codes: tuple[str, ...]
    sentence: str
    key: Key


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


class HostPlace(HostKeys, frozen=True, omit_defaults=False, kw_only=True):
    """A host in one placement: how far it comes by keys, and which other filters refuse it."""

    host: Named
    refused_by: tuple[Unit, ...]


class KeysListDocument(Document, frozen=True, kw_only=True, tag="keys_list"):
    """The keys that are set."""

    keys: tuple[SetKey, ...]


class KeysCheckDocument(Document, frozen=True, kw_only=True, tag="keys_check"):
    """What is wrong with the keys that are set."""

    mistakes: tuple[KeyMistake, ...]


class KeysOfVmDocument(Document, frozen=True, kw_only=True, tag="keys_of_vm"):
    """The compiled keys of a VM."""

    vm: Named
    #: By name.
    system: Mapping[str, Compiled]
    customer: Mapping[str, Compiled]
    ignored: tuple[Ignored, ...]


class KeysOfHostDocument(Document, frozen=True, kw_only=True, tag="keys_of_host"):
    """The keys of a host: its own, those computed for it, and those that VMs on it brought."""

    host: Named
    system: tuple[HostValue, ...]
    customer: tuple[HostValue, ...]
    #: Those that VMs which start here take a copy of.
    sticky: tuple[Key, ...]
    ratios: Ratios


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
    failed: Failure | None
    #: Whether its storage binds the VM to a host, so that keys have no say.
    local_storage: bool
    sentence: str
    hosts: tuple[HostPlace, ...]


class KeysChangeDocument(Document, frozen=True, kw_only=True, tag="keys_change"):
    """What was set, and what was removed; `forgotten` are ids of VMs that are gone from the engine."""

    set: tuple[Key, ...]
    unset: tuple[Key, ...]
    forgotten: tuple[str, ...]


def key_data(key: PlacementKey, snapshot: Snapshot) -> Key:
    return Key(**_fields(key, snapshot))


def set_key(key: PlacementKey, authorship: tuple[str | None, str | None], snapshot: Snapshot) -> SetKey:
    """Tell of a key with who set it, and when."""
    set_by, set_at = authorship
    return SetKey(**_fields(key, snapshot), set_by=set_by, set_at=set_at)


def keys_of_vm_document(keys: CompiledKeys, vm: Vm, snapshot: Snapshot) -> KeysOfVmDocument:
    return KeysOfVmDocument(
        vm=Named(vm.id, vm.name),
        system={key.name: _compiled(key, snapshot) for key in keys.system.values()},
        customer={key.name: _compiled(key, snapshot) for key in keys.customer.values()},
        ignored=tuple(
            Ignored(tuple(one.codes), "; ".join(map(code_sentence, one.codes)), key_data(one.key, snapshot))
            for one in keys.ignored
        ),
    )


def keys_of_host_document(
    host: Named,
    system: Iterable[tuple[str, Fraction, int]],
    customer: Iterable[tuple[str, Fraction, int]],
    sticky: Iterable[PlacementKey],
    ratios: Contention,
    snapshot: Snapshot,
) -> KeysOfHostDocument:
    return KeysOfHostDocument(
        host=host,
        system=tuple(HostValue(name, float(value), count) for name, value, count in system),
        customer=tuple(HostValue(name, float(value), count) for name, value, count in customer),
        sticky=tuple(key_data(key, snapshot) for key in sticky),
        ratios=Ratios(
            memory=Ratio(float(ratios.memory), ratios.memory_source),
            cpu=Ratio(float(ratios.cpu), ratios.cpu_source),
        ),
    )


def keys_explain_document(
    decision: Decision,
    every: Decision,
    vm: Vm,
    hosts: Iterable[tuple[str, Sequence[Unit]]],
    sentence: str,
    snapshot: Snapshot,
) -> KeysExplainDocument:
    """Tell of a placement among the hosts that other filters leave; `every` is of all that were asked about.

    These are `hosts`, with the other units that refuse each.
    """
    decided = {one.host: one for one in every.hosts}
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
        sentence=sentence,
        hosts=tuple(
            HostPlace(
                **msgspec.structs.asdict(host_keys(decided[host])),
                host=named_host(host, snapshot),
                refused_by=tuple(units),
            )
            for host, units in hosts
            if host in decided
        ),
    )


def _fields(key: PlacementKey, snapshot: Snapshot) -> dict[str, Any]:
    return {
        "kind": key_kind(key),
        "sentence": key_title(key, snapshot),
        "place": key_place(key, snapshot),
        "level": key.level,
        "resource": Named(key.resource, resource_name(key.level, key.resource, snapshot)),
        "key_class": key.key_class,
        "name": key.name,
        "value": key.value,
        "weight": key.weight,
        "sticky": key.sticky,
    }


def _compiled(key: CompiledKey, snapshot: Snapshot) -> Compiled:
    return Compiled(
        name=key.name,
        value=float(key.value),
        weight=float(key.weight),
        source=key_data(key.source, snapshot),
        hidden=tuple(key_data(one, snapshot) for one in key.hidden),
    )
