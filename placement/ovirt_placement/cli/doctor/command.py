"""`ovirt-placement doctor`: what is not right, in plain words, and what to do about it."""

from __future__ import annotations

import argparse

from ovirt_placement import config
from ovirt_placement.cli.arguments import add_command, add_config, add_json
from ovirt_placement.cli.question import show_json

DESCRIPTION = """\
Check the engine, the proxy, the scheduling policies and this machine, and report each problem with its
remedy. See docs/doctor.md. The exit status is 0 if no problem was found, 1 if one was, 2 if the
configuration is at fault.
"""


EXAMPLES = """\
  ovirt-placement doctor
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(subparsers, "doctor", summary, DESCRIPTION, run, EXAMPLES)
    parser.add_argument(
        "--proxy",
        metavar="URL",
        help="the scheduler proxy's address; else as configured on this machine",
    )
    parser.add_argument(
        "--event",
        action="store_true",
        help="report rules without meaning as events of the engine, one a day and cluster",
    )
    add_config(parser)
    add_json(parser)
    parser.set_defaults(answers=True, remains_root=True)  # what only root may look at is looked at first


def run(args: argparse.Namespace) -> int:
    # The SDK and SQLAlchemy take long to load: not for `--help`.
    from ovirt_placement.answers.doctor.examination import doctor, doctor_lines

    answer = doctor(config.load(args.config), args.proxy, report=args.event)
    if args.json:
        show_json(answer)
    else:
        print("\n".join(doctor_lines(answer)))
    return int(bool(answer.findings))
