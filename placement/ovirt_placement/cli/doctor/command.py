"""`ovirt-placement doctor`: what is not right, in plain words, and what to do about it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ovirt_placement import config
from ovirt_placement.answers.documents.doctor import DoctorDocument, Found
from ovirt_placement.cli.arguments import add_command, add_config
from ovirt_placement.cli.question import show_json

if TYPE_CHECKING:
    from ovirt_placement.answers.doctor.examination import Examination

DESCRIPTION = """\
Look for what is not right with the engine, the proxy, the scheduling policies and this machine, and say of
each thing what to do about it. Nothing is changed, but for the event that --event adds. See docs/doctor.md.
The exit status is 0 if all is well, 1 if something is not, 2 if the configuration is at fault.
"""


EXAMPLES = """\
  ovirt-placement doctor
  ovirt-placement doctor --proxy http://127.0.0.1:18781 --json
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        subparsers, "doctor", "what is not right, and what to do about it", DESCRIPTION, run, EXAMPLES
    )
    parser.add_argument(
        "--proxy", metavar="URL", help="where the scheduler proxy listens: ask it for its units, and compare"
    )
    parser.add_argument(
        "--event",
        action="store_true",
        help="tell the engine of rules that mean nothing, by an event a day and cluster",
    )
    add_config(parser)
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json.md)")
    parser.set_defaults(answers=True)


def run(args: argparse.Namespace) -> int:
    # The SDK and SQLAlchemy take long to load: not for `--help`.
    from ovirt_placement.answers.doctor.examination import examine

    found = examine(config.load(args.config), args.proxy, tell=args.event)
    if args.json:
        show_json(_document(found))
    else:
        _show(found)
    return int(bool(found.findings))


def _document(found: Examination) -> DoctorDocument:
    return DoctorDocument(
        findings=tuple(
            Found(finding.kind, finding.what, finding.remedy, finding.cluster, finding.rule)
            for finding in found.findings
        ),
        not_examined=tuple(found.not_examined),
        hints=tuple(found.hints),
    )


def _show(found: Examination) -> None:
    for finding in found.findings:
        print(f"- {finding.what}\n  -> {finding.remedy}")
    for text in found.not_examined:
        print(f"- not examined: {text}")
    if not found.findings:
        print("All is well." if not found.not_examined else "Nothing else is wrong.")
    for text in found.hints:
        print(f"Hint: {text}.")
