"""`ovirt-enforcer why-not`: why a VM that breaks a rule has not been moved."""

from __future__ import annotations

import argparse

from ovirt_enforcer.cli.arguments import add_config, add_json
from ovirt_enforcer.cli.current_gates import current_gates
from ovirt_enforcer.history.why_not import Known, text, why_not
from ovirt_placement import config as configuration
from ovirt_placement import inventory
from ovirt_placement.cli.question import find, show_json
from ovirt_placement.cli.store import opened
from ovirt_placement.config import Config
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.store.history import HistoryStore
from ovirt_placement.store.intents import Store
from ovirt_placement.store.leases import LeaseStore

_DAY_SECONDS = 24 * 3600.0


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("why-not", help="say why a VM that breaks a rule has not been moved")
    parser.add_argument("vm", metavar="VM", help="its name or id")
    add_config(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    config = configuration.load(args.config)
    snapshot = inventory.snapshot(config=config, max_age=0.0)
    vm = find(args.vm, "VM", snapshot.vms)
    answer = why_not(vm, _known(config, args, snapshot, vm))
    if args.json:
        show_json(answer)
    else:
        print(text(answer))
    return 0


def _known(config: Config, args: argparse.Namespace, snapshot: Snapshot, vm: Vm) -> Known:
    held, held_groups = _held(config, snapshot)
    with opened(HistoryStore, args, create=False) as history:
        plans = [plan for plan in history.plans(since_seconds=_DAY_SECONDS) if plan.cluster == vm.cluster]
    with opened(Store, args, create=False) as store:
        under_way = store.open_intents()
        ended = store.history(within_seconds=_DAY_SECONDS, vm=vm.id)
    with opened(LeaseStore, args, create=False) as leases:
        lease = leases.read()
    return Known(
        snapshot=snapshot,
        held=held,
        held_groups=held_groups,
        plan=plans[-1] if plans else None,
        under_way=under_way,
        ended=ended,
        led=lease is not None and lease.left_seconds > 0,
    )


def _held(config: Config, snapshot: Snapshot) -> tuple[dict[str, str], dict[str, str]]:
    """VMs and rules that a gate holds."""
    with current_gates(config) as gates:
        return gates.held(snapshot), gates.held_groups(snapshot)
