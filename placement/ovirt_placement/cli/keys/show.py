"""`ovirt-placement keys show`: the compiled keys of one VM or one host."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from fractions import Fraction

from ovirt_placement.answers.documents.keys import keys_of_host_document, keys_of_vm_document
from ovirt_placement.answers.finding import find
from ovirt_placement.answers.key_sentences import code_sentence, figure, key_place, written, written_weight
from ovirt_placement.cli.keys.state import read_keys
from ovirt_placement.cli.question import show, show_answer
from ovirt_placement.model import Host, PlacementKey, Snapshot, Vm
from ovirt_placement.model.names import Named
from ovirt_placement.rules.placement_keys.compile import CompiledKey, CompiledKeys
from ovirt_placement.rules.placement_keys.contention import Contention, Source, contention_of_host
from ovirt_placement.rules.placement_keys.host_table import keys_of_host
from ovirt_placement.rules.placement_keys.node_keys import NodeKeys, Values
from ovirt_placement.rules.placement_keys.parameters import settings_of
from ovirt_placement.rules.placement_keys.placing import compiled_keys

Rows = list[tuple[str, ...]]

_RATIOS = "Contention ratios: memory {memory} ({memory_source}), CPUs {cpu} ({cpu_source})"
_SOURCES = {
    Source.HOST: "its own",
    Source.POLICY: "the policy's",
    Source.CLUSTER: "the cluster's",
}


def run(args: argparse.Namespace) -> int:
    snapshot = read_keys(args).snapshot
    items: tuple[Vm | Host, ...] = (*snapshot.vms, *snapshot.hosts)
    item = find(args.item, "VM or host", items)
    if isinstance(item, Vm):
        keys = compiled_keys(snapshot, item.id)
        if args.json:
            show_answer(args, keys_of_vm_document(keys, item, snapshot))
        else:
            _show_vm(keys, item, snapshot)
    else:
        _tell_of_host(item, snapshot, args)
    return 0


def _show_vm(keys: CompiledKeys, vm: Vm, snapshot: Snapshot) -> None:
    rows: Rows = [_row("system", key, snapshot) for key in keys.system.values()]
    rows += [_row("customer", key, snapshot) for key in keys.customer.values()]
    if rows:
        show(rows, ("list", "name", "value", "weight", "from", "hides"))
    else:
        print(f"No keys have a say about VM {vm.name}.")
    for one in keys.ignored:
        codes = "; ".join(map(code_sentence, one.codes))
        print(f"\nignored: {key_place(one.key, snapshot)}: {one.key.name}: {codes}")


def _row(keys: str, key: CompiledKey, snapshot: Snapshot) -> tuple[str, ...]:
    return (
        keys,
        key.name,
        figure(key.value),
        figure(key.weight),
        key_place(key.source, snapshot),
        "\n".join(_hidden(key.hidden, snapshot)),
    )


def _hidden(keys: Iterable[PlacementKey], snapshot: Snapshot) -> Iterator[str]:
    for key in keys:
        yield f"{key_place(key, snapshot)}: {written(key.value)} ({written_weight(key)})"


def _tell_of_host(host: Host, snapshot: Snapshot, args: argparse.Namespace) -> None:
    settings = settings_of(snapshot.cluster_by_id[host.cluster].scheduling_properties)
    ratios = contention_of_host(snapshot, host, settings)
    keys = keys_of_host(snapshot, host, settings)
    if not args.json:
        _show_host(keys, ratios)
        return
    show_answer(
        args,
        keys_of_host_document(
            Named(host.id, host.name),
            _instances(keys.system),
            _instances(keys.customer),
            keys.sticky,
            ratios,
            snapshot,
        ),
    )


def _show_host(keys: NodeKeys, ratios: Contention) -> None:
    sticky = {key.name for key in keys.sticky}
    rows: Rows = [
        ("system", name, figure(value), str(count), "sticky" if name in sticky else "")
        for name, value, count in _instances(keys.system)
    ]
    rows += [
        ("customer", name, figure(value), str(count), "") for name, value, count in _instances(keys.customer)
    ]
    show(rows, ("list", "name", "value", "times", ""))
    told = _RATIOS.format(
        memory=figure(ratios.memory),
        memory_source=_SOURCES[ratios.memory_source],
        cpu=figure(ratios.cpu),
        cpu_source=_SOURCES[ratios.cpu_source],
    )
    print(f"\n{told}")


def _instances(values: Values) -> Iterator[tuple[str, Fraction, int]]:
    """By name and value, each value with the number of VMs (or the host itself) that bring it."""
    for name in sorted(values):
        for ratio, count in sorted(values[name], key=lambda found: Fraction(*found[0])):
            yield name, Fraction(*ratio), count
