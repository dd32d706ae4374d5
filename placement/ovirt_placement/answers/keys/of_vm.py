"""The compiled placement keys of a VM: where each comes from, and what it hides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.keys.key import KeyRecord, key_record
from ovirt_placement.answers.keys.sentences import code_sentence, figure, written, written_weight
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.compile import CompiledKey
from ovirt_placement.rules.placement_keys.placing import compiled_keys

HEADERS = ("list", "name", "value", "weight", "from", "hides")


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


def rows(answer: KeysOfVmDocument) -> list[tuple[str, ...]]:
    """The keys of both lists, with the level that each comes from and what it hides there."""
    return [
        *(_row("system", key) for key in answer.system.values()),
        *(_row("customer", key) for key in answer.customer.values()),
    ]


def ignored(answer: KeysOfVmDocument) -> Iterator[str]:
    """The keys that take no part, and why."""
    for one in answer.ignored:
        yield f"ignored: {one.key.place}: {one.key.name}: {one.sentence}"


def _row(keys: str, key: Compiled) -> tuple[str, ...]:
    hidden = (f"{one.place}: {written(one.value)} ({written_weight(one.weight)})" for one in key.hidden)
    return keys, key.name, figure(key.value), figure(key.weight), key.source.place, "\n".join(hidden)
