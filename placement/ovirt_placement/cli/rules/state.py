"""Where commands about placement rules take them from: a state file, or engine and store."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from ovirt_placement import config, inventory
from ovirt_placement.cli.question import PATIENCE_SECONDS, read_state
from ovirt_placement.cli.store import stored
from ovirt_placement.inventory import Measured
from ovirt_placement.inventory.on_demand import read_searches, searches_of
from ovirt_placement.model import PlacementRule, Snapshot
from ovirt_placement.store.placement_rules import RuleStore, SetRule


class RuleState(NamedTuple):
    snapshot: Snapshot
    #: Who changed each rule, by its name, where the store knows.
    authors: Mapping[str, SetRule]


def read_rules(args: argparse.Namespace) -> RuleState:
    """The state that is asked about; a live one with the rules that the store holds at this moment."""
    snapshot = read_state(args, measured=Measured.NOTHING)
    if args.state is not None:
        return RuleState(snapshot, {})
    authors = {one.rule.name: one for one in stored_rules(args)}
    return RuleState(replace(snapshot, placement_rules=tuple(one.rule for one in authors.values())), authors)


def stored_rules(args: argparse.Namespace) -> tuple[SetRule, ...]:
    """What a store knows; one that nobody has written to holds nothing."""
    return stored(RuleStore, args, RuleStore.all_rules, ())


def read_engine(args: argparse.Namespace, rules: Iterable[PlacementRule]) -> Snapshot:
    """The engine's state with all that these rules may name.

    What the inventory publishes lacks tags and who searches find as long as no rule names any: then the
    engine itself is asked.
    """
    loaded, every = config.load(args.config), tuple(rules)
    tagged = any(rule.names_vm_tags or rule.names_host_tags for rule in every)
    searches = searches_of(every)
    found = None if tagged else inventory.snapshot(config=loaded, max_age=0.0, deadline=PATIENCE_SECONDS)
    if found is not None and not searches:
        return found
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.engine.connection.client import connect
    from ovirt_placement.engine.reading.topology import read_snapshot

    with connect(loaded.engine) as connection:
        if found is None:
            found = read_snapshot(connection, statistics=True, devices=True)
        return replace(found, member_searches=read_searches(connection, searches))
