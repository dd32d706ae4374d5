"""The command `ovirt-scheduler-proxy`: run the proxy, check plugins, or speak to a running proxy.

What each subcommand needs takes long to load: not for `--help`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from ovirt_service import identity, process
from ovirt_service.arguments import Parser, add_version
from ovirt_service.screen import answering

COMMAND = "ovirt-scheduler-proxy"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return process.guarded(COMMAND, lambda: _command(arguments))


def _command(arguments: Sequence[str] | None) -> int:
    options = _parser().parse_args(arguments)
    status: int = options.run(options)
    return status


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog=COMMAND, description="Answers the oVirt engine's external scheduler.")
    add_version(parser)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="serve the engine until SIGTERM")
    _add_common(run)
    run.add_argument("--listen", metavar="HOST:PORT", help="where to listen (default 127.0.0.1:18781)")
    run.set_defaults(run=_run)

    check = commands.add_parser("check", help="load all plugins and print their units and problems")
    _add_common(check)
    check.add_argument("--json", action="store_true", help="print JSON")
    check.add_argument("--all", action="store_true", help="also each unit's file and parameters")
    check.set_defaults(run=_check)

    call = commands.add_parser("call", help="call a method of a running proxy, as the engine does")
    call.add_argument("--config", type=Path, metavar="FILE", help="the configuration of the running proxy")
    call.add_argument("--url", metavar="URL", help="where the proxy listens (default: as configured)")
    call.add_argument("--json", action="store_true", help="print JSON")
    _add_methods(call)
    call.set_defaults(run=_call)
    return parser


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration file")
    parser.add_argument(
        "--plugins", action="append", default=[], metavar="DIR", help="a folder with plugins (repeatable)"
    )


def _add_methods(parser: argparse.ArgumentParser) -> None:
    """One subcommand for each method, with arguments that a person can type."""
    methods = parser.add_subparsers(required=True, dest="method", metavar="METHOD")
    _add_url(methods.add_parser("discover", help="the units that the engine is notified of"))
    for name, text in (
        ("runFilters", "the hosts that filters accept"),
        ("runCostFunctions", "the weights of hosts"),
    ):
        method = methods.add_parser(name, help=text)
        method.add_argument("--unit", action="append", default=[], required=True, help="a unit (repeatable)")
        method.add_argument("--vm", required=True, metavar="ID", help="the VM to place")
        _add_question(method)
    balance = methods.add_parser("runLoadBalancing", help="the VM that a balance unit wants moved")
    balance.add_argument("--unit", required=True, help="the unit")
    _add_question(balance)


def _add_url(parser: argparse.ArgumentParser) -> None:
    """What may stand before the method may stand after it, too."""
    parser.add_argument(
        "--url", default=argparse.SUPPRESS, help="where the proxy listens (default: as configured)"
    )
    parser.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON")


def _add_question(parser: argparse.ArgumentParser) -> None:
    _add_url(parser)
    parser.add_argument(
        "--host", action="append", default=[], metavar="ID", help="a host to ask about (repeatable)"
    )
    parser.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a cluster policy property (repeatable)",
    )


def _run(options: argparse.Namespace) -> int:
    import msgspec

    from ovirt_scheduler_proxy import service

    from . import settings

    chosen = settings.with_plugins(settings.load(options.config), options.plugins)
    if options.listen:
        server = msgspec.structs.replace(chosen.server, listen=options.listen)
        chosen = msgspec.structs.replace(chosen, server=server)
    record = settings.record_file(chosen.decisions, options.config)
    identity.become_owner(settings.folders(chosen, record))
    service.run(chosen, record)
    return 0


def _check(options: argparse.Namespace) -> int:
    from ovirt_scheduler_proxy import commands

    from . import settings

    chosen = settings.with_plugins(settings.load(options.config), options.plugins)
    identity.become_owner(settings.folders(chosen, None))
    with answering("loading the plugins"):
        return commands.check(chosen, options.json, whole=options.all)


def _call(options: argparse.Namespace) -> int:
    from ovirt_scheduler_proxy import commands

    from . import settings

    return commands.call(settings.load(options.config), options)


if __name__ == "__main__":
    sys.exit(main())
