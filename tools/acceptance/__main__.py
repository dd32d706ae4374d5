"""Tries this release on an engine, by its address, with objects of its own that are removed at the end.

`make test-engine URL=https://ENGINE/ovirt-engine/api USER=admin@internal` (docs/acceptance.md). It runs our
commands as an administrator does, and changes nothing whose name does not begin with its prefix, but for the
host that `--maintenance` names.
"""

import argparse
import getpass
import os
import signal
import sys
import tempfile
from pathlib import Path

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_service.arguments import Parser
from ovirt_service.errors import UserError
from tools.acceptance.steps import KINDS, STEPS, log_in, read_state
from tools.acceptance.trial import Skipped, Trial


def _announced(options: argparse.Namespace) -> bool:
    """Say what comes; whether it may."""
    print(f"On {options.url}, as {options.user}, this:")
    for name, what, _ in STEPS:
        print(f"  {name}: {what}")
    print(f"All that it makes has a name that begins with {options.prefix}, and is removed at the end,")
    print("also when it is stopped; the event stays in the engine's log.")
    try:
        return options.yes or input("Go on? [y/N] ").strip().lower() in ("y", "yes")
    except (EOFError, KeyboardInterrupt):
        print("\nNothing was done; with --yes it does not ask.")
        return False


def remove_all(trial: Trial) -> int:
    """Remove what was made, the latest first; what fails is named."""
    left = 0
    while trial.undo:
        name, undo = trial.undo.pop()
        try:
            undo()
        except Exception as error:  # whatever it is, the rest is to be removed
            left += 1
            print(f"NOT REMOVED: {name}: {error}")
    return left


def attempt(trial: Trial) -> int:
    """Take all steps; how many failed."""
    failed = 0
    for name, _, step in STEPS:
        try:
            print(f"passed   {name}: {step(trial)}", flush=True)
        except Skipped as reason:
            print(f"skipped  {name}: {reason}", flush=True)
        except Exception as error:  # an engine may answer what was not thought of
            failed += 1
            print(f"FAILED   {name}: {type(error).__name__}: {error}", flush=True)
            if step in (log_in, read_state):
                break
    return failed


_STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def _stop_no_more() -> None:
    for one in _STOPPING:
        signal.signal(one, signal.SIG_IGN)  # what was made is removed first


def _stop_here(number: int, frame: object) -> None:
    _stop_no_more()
    raise KeyboardInterrupt(signal.Signals(number).name)


def parsed(words: list[str] | None) -> argparse.Namespace:
    parser = Parser(prog="make test-engine", description=__doc__)
    parser.add_argument("--url", required=True, help="the API's address; it ends in /ovirt-engine/api")
    parser.add_argument("--user", required=True, help="who tries, as admin@internal: a SuperUser")
    parser.add_argument("--password-file", metavar="FILE", help="else $OVIRT_PASSWORD, else it is asked for")
    parser.add_argument("--ca-file", metavar="FILE", help="the CA that signed the engine's certificate")
    parser.add_argument("--insecure", action="store_true", help="do not check the engine's certificate")
    parser.add_argument("--cluster", help="where VMs are started; else the first one with a host that is up")
    parser.add_argument("--vm", nargs="+", help="two VMs that may be started, stopped and migrated")
    parser.add_argument("--maintenance", metavar="HOST", help="a host that may be put into maintenance")
    for kind, what in KINDS.items():
        text = f"a user {what}, and a file with the password"
        parser.add_argument(f"--{kind}", metavar="USER:FILE", help=text)
    parser.add_argument("--prefix", default="placement-trial-", help="what names of what it makes begin with")
    parser.add_argument("--yes", action="store_true", help="do not ask before it begins")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    """Exit status: 0 if no step failed and nothing is left, else 1; 2 if it did not begin; 130 if stopped."""
    options = parsed(words)
    if not _announced(options):
        return 2
    if not options.password_file and not os.environ.get("OVIRT_PASSWORD"):
        os.environ["OVIRT_PASSWORD"] = getpass.getpass(f"Password of {options.user}: ")
    for number in _STOPPING:
        signal.signal(number, _stop_here)
    settings = EngineSettings(
        url=options.url,
        username=options.user,
        password_file=Path(options.password_file) if options.password_file else None,
        ca_file=Path(options.ca_file) if options.ca_file else None,
        insecure=options.insecure,
    )
    stopped, failed = False, 0
    with tempfile.TemporaryDirectory() as folder, EngineConnection(settings) as connection:
        trial = Trial(connection, options, Path(folder))
        left = 0
        try:
            failed = attempt(trial)
        except KeyboardInterrupt as reason:
            stopped = True
            print(f"stopped by {reason or 'the keyboard'}: what was made is removed", flush=True)
        finally:
            _stop_no_more()
            left = remove_all(trial)
    print(f"{failed} failed, {left} left behind")
    return 130 if stopped else int(bool(failed or left))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UserError as error:
        print(f"make test-engine: {error}", file=sys.stderr)
        sys.exit(2)
