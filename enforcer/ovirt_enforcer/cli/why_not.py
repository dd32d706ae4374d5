"""`ovirt-enforcer why-not`: why a VM that violates a rule has not been moved."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from ovirt_enforcer.history.why_not import KnownHistory, text, why_not
from ovirt_enforcer.on_request.of_engine import of_engine
from ovirt_enforcer.on_request.question import Asked
from ovirt_enforcer.recorded_settings import recorded_settings
from ovirt_placement import config as configuration
from ovirt_placement.answers.enforcement import not_led
from ovirt_placement.answers.finding import find
from ovirt_placement.cli.arguments import add_command, add_config, add_json
from ovirt_placement.cli.question import PATIENCE_SECONDS, show_json
from ovirt_placement.cli.store import opened
from ovirt_placement.model import Vm
from ovirt_placement.store.enforcer_settings import EnforcerSettingsStore, differences
from ovirt_placement.store.history import HistoryStore
from ovirt_placement.store.intents import Store

_DAY_SECONDS = 24 * 3600.0


DESCRIPTION = """\
Show which rules a VM violates, and why each is not repaired yet: a gate, a plan, a failed migration.
"""

EXAMPLES = """\
  ovirt-enforcer why-not web1
"""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(commands, "why-not", summary, DESCRIPTION, run, EXAMPLES)
    parser.add_argument("vm", metavar="VM", help="its name or id")
    add_config(parser)
    add_json(parser)


def run(args: argparse.Namespace) -> int:
    config = configuration.load(args.config)
    found = of_engine(config, PATIENCE_SECONDS)
    vm = find(args.vm, "VM", found.snapshot.vms, found.snapshot)
    answer = why_not(vm, _known(found, args, vm))
    if args.json:
        show_json(answer)
    else:
        print(text(answer))
    return 0


def _known(found: Asked, args: argparse.Namespace, vm: Vm) -> KnownHistory:
    with opened(HistoryStore, args, create=False) as history:
        plans = [plan for plan in history.plans(since_seconds=_DAY_SECONDS) if plan.cluster == vm.cluster]
    with opened(Store, args, create=False) as store:
        under_way = store.open_intents()
        ended = store.history(within_seconds=_DAY_SECONDS, vm=vm.id)
    with opened(EnforcerSettingsStore, args, create=False) as settings:
        there = settings.of_leader()
    return KnownHistory(
        snapshot=found.snapshot,
        frozen=found.frozen,
        held_groups=found.spared,
        plan=plans[-1] if plans else None,
        under_way=under_way,
        ended=ended,
        not_led=not_led(configuration.load(args.config)),
        other_settings=_other_settings(found, there),
    )


def _other_settings(found: Asked, there: Mapping[str, Any] | None) -> tuple[str, ...]:
    """In which settings the enforcer that leads differs from those here; none where it is not known."""
    if found.settings is None or there is None:
        return ()
    return differences(there, "here", recorded_settings(found.settings))
