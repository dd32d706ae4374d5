"""What commands are asked about: a state file, or the engine as the daemon would see it now."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement import config as configuration
from ovirt_placement.model import Snapshot, state_file
from ovirt_placement.planning.problem.posing import Wishes


@dataclass(frozen=True, slots=True)
class Asked:
    """A cluster's state, what is wished for, and what is to be left alone with the reason."""

    snapshot: Snapshot
    wishes: Wishes
    #: Of a state file there are none.
    settings: EnforcerSettings | None = None
    held: Mapping[str, str] = field(default_factory=dict)
    spared: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[tuple[str, str], str] = field(default_factory=dict)


def asked(args: argparse.Namespace) -> Asked:
    """By the rules and capacity alone with `--state`; else by the configuration, and what is held back now.

    Raises `UserError`.
    """
    if args.state is not None:
        wishes = Wishes(repair=args.repair) if args.repair else Wishes()
        return Asked(state_file.load(args.state), wishes)
    # The SDK and SQLAlchemy take long to load: not for a state file.
    from ovirt_enforcer.cli.asking_engine import of_engine

    found = of_engine(configuration.load(args.config))
    return replace(found, wishes=replace(found.wishes, repair=args.repair)) if args.repair else found
