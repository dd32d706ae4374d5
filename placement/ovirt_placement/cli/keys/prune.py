"""`ovirt-placement keys prune`: removes what the store holds of objects that the engine has no more."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from functools import partial

from ovirt_placement.answers.keys.change import keys_change
from ovirt_placement.answers.keys.key import key_title
from ovirt_placement.cli.keys.report import report
from ovirt_placement.cli.keys.state import opened_store, read_engine
from ovirt_placement.cli.login import login_name
from ovirt_placement.model import PlacementKey
from ovirt_placement.model.key_resources import LISTED_WITH_DEVICES, gone_keys
from ovirt_placement.store.keys import KeyChange, KeyPlace


def run(args: argparse.Namespace) -> int:
    with opened_store(args) as store:
        # The store before the engine: what is set or recorded from now on is of objects that may be new.
        known = {KeyPlace.of(one.key) for one in store.all_keys()}
        remembered = store.remembered_vms()
        engine = read_engine(args)
        # An engine that shows no VM at all says nothing about them.
        missing = sorted(remembered - engine.vm_by_id.keys()) if engine.vms else []

        standing: list[PlacementKey] = []

        def decide(placement: Iterable[PlacementKey]) -> KeyChange:
            standing[:] = placement
            keys = (key for key in standing if KeyPlace.of(key) in known)
            return KeyChange(remove=gone_keys(keys, engine, LISTED_WITH_DEVICES))

        if args.dry_run:
            change = decide(one.key for one in store.all_keys())
        else:
            change = store.change(decide, set_by=login_name(), title=partial(key_title, snapshot=engine))
            store.forget_vms(missing)
    report(args, keys_change(engine, standing, change, missing, dry_run=args.dry_run))
    return 0
