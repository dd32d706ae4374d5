"""`ovirt-placement keys show`: the compiled keys of one VM or one host."""

from __future__ import annotations

import argparse

from ovirt_placement.answers.document import find
from ovirt_placement.answers.keys import compiled
from ovirt_placement.answers.keys.compiled import (
    KeysOfHostDocument,
    KeysOfVmDocument,
    keys_of_host,
    keys_of_vm,
)
from ovirt_placement.cli.keys.state import read_keys
from ovirt_placement.cli.question import show, show_answer
from ovirt_placement.model import Host, Vm


def run(args: argparse.Namespace) -> int:
    snapshot = read_keys(args).snapshot
    items: tuple[Vm | Host, ...] = (*snapshot.vms, *snapshot.hosts)
    item = find(args.item, "VM or host", items, snapshot)
    answer = keys_of_vm(snapshot, item) if isinstance(item, Vm) else keys_of_host(snapshot, item)
    if args.json:
        show_answer(args, answer)
    elif isinstance(answer, KeysOfVmDocument):
        _show_vm(answer)
    else:
        _show_host(answer)
    return 0


def _show_vm(answer: KeysOfVmDocument) -> None:
    if found := compiled.vm_rows(answer):
        show(found, compiled.VM_HEADERS)
    else:
        print(f"No keys have a say about VM {answer.vm.name}.")
    for line in compiled.ignored_lines(answer):
        print(f"\n{line}")


def _show_host(answer: KeysOfHostDocument) -> None:
    show(compiled.host_rows(answer), compiled.HOST_HEADERS)
    print(f"\n{compiled.ratios_text(answer)}")
