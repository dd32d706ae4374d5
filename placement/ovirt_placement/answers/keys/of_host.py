"""The placement keys of a host: its own, those computed for it, and those that VMs on it brought."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.keys.key import KeyRecord, key_record
from ovirt_placement.answers.keys.sentences import figure
from ovirt_placement.model import Host, Snapshot
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.contention import Source, contention_of_host
from ovirt_placement.rules.placement_keys.host_table import keys_of_host as keys_of
from ovirt_placement.rules.placement_keys.node_keys import Values
from ovirt_placement.rules.placement_keys.parameters import settings_of

HEADERS = ("list", "name", "value", "times", "")

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
    keys = keys_of(snapshot, host, settings)
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


def rows(answer: KeysOfHostDocument) -> list[tuple[str, ...]]:
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
