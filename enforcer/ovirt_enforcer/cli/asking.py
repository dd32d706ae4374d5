"""What commands are asked about: a state file, or the engine as the daemon would see it now."""

from __future__ import annotations

import argparse
from dataclasses import replace

from ovirt_enforcer.on_request.question import Asked
from ovirt_placement import config as configuration
from ovirt_placement.cli.question import PATIENCE_SECONDS
from ovirt_placement.model import state_file
from ovirt_placement.planning.problem.build_problem import PlanOptions


def asked(args: argparse.Namespace) -> Asked:
    """By the rules and capacity alone with `--state`; else by the configuration, and what is held back now.

    Raises `UserError`.
    """
    if args.state is not None:
        options = PlanOptions(repair=args.repair) if args.repair else PlanOptions()
        return Asked(state_file.load(args.state), options)
    # The SDK and SQLAlchemy take long to load: not for a state file.
    from ovirt_enforcer.on_request.of_engine import of_engine

    found = of_engine(configuration.load(args.config), PATIENCE_SECONDS)
    return replace(found, options=replace(found.options, repair=args.repair)) if args.repair else found
