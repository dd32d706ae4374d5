"""The command `ovirt-scheduler-proxy`: run the proxy, check plugins, or speak to a running proxy.

What each subcommand needs takes long to load: not for `--help`.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ovirt_scheduler_proxy import settings
from ovirt_scheduler_proxy.worker.contract import lines
from ovirt_service import identity, process
from ovirt_service.arguments import Parser, add_version
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError
from ovirt_service.http.addresses import any_certificate, redacted, shown, split_address
from ovirt_service.text import answering, table

if TYPE_CHECKING:
    from ovirt_scheduler_proxy.plugins import Plugins, ProxyCheck

COMMAND = "ovirt-scheduler-proxy"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return process.guarded(COMMAND, lambda: _command(arguments))


def _command(arguments: Sequence[str] | None) -> int:
    options = _parser().parse_args(arguments)
    return int(options.run(options))


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
    _add_proxy(call)
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
    discover = methods.add_parser("discover", help="the units that the engine is notified of")
    _add_proxy(discover, default=argparse.SUPPRESS)
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


def _add_proxy(parser: argparse.ArgumentParser, **default: Any) -> None:
    """What may stand before the method may stand after it, too."""
    config = "the configuration of the running proxy"
    parser.add_argument("--config", type=Path, metavar="FILE", help=config, **default)
    url = "where the proxy listens (default: as configured)"
    parser.add_argument("--url", metavar="URL", help=url, **default)
    parser.add_argument("--json", action="store_true", help="print JSON", **default)


def _add_question(parser: argparse.ArgumentParser) -> None:
    _add_proxy(parser, default=argparse.SUPPRESS)
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


def _settings(options: argparse.Namespace) -> settings.Settings:
    return settings.with_plugins(settings.load(options.config), options.plugins)


def _run(options: argparse.Namespace) -> int:
    from ovirt_scheduler_proxy import service

    chosen = _settings(options)
    if options.listen:
        server = msgspec.structs.replace(chosen.server, listen=options.listen)
        chosen = msgspec.structs.replace(chosen, server=server)
    record = settings.record_file(chosen.decisions, options.config)
    identity.become_owner(settings.folders(chosen, record))
    service.run(chosen, record)
    return 0


def _check(options: argparse.Namespace) -> int:
    """Print the units and problems of all plugin folders; returns 1 when there is a problem, else 0."""
    chosen = _settings(options)
    identity.become_owner(settings.folders(chosen, None))
    with answering("loading the plugins"):
        logging.disable()  # what is wrong is printed below
        found = _examined(chosen)
        if options.json:
            print(json.dumps(msgspec.to_builtins(found), indent=2))
        else:
            print(_units_as_text(found, whole=options.all))
        return 1 if found.problems else 0


def _examined(chosen: settings.Settings) -> ProxyCheck:
    import asyncio

    from ovirt_scheduler_proxy.plugins import ProblemFound, ProxyCheck, load_all, unchecked_properties

    async def load() -> Plugins:
        workers = msgspec.structs.replace(chosen.workers, warm=1)
        plugins = await load_all(msgspec.structs.replace(chosen, workers=workers))
        for pool in plugins.pools.values():
            await pool.close()
        return plugins

    plugins = asyncio.run(load())
    known = {unit.unit for unit in plugins.units}
    unknown = [name for name in chosen.units if name not in known]
    advice = "in the configuration: no plugin has such a unit"
    return ProxyCheck(
        units=plugins.units,
        problems=(
            *plugins.problems,
            *(ProblemFound("", name, f"[units.{name}] {advice}{nearest(name, known)}") for name in unknown),
        ),
        unchecked=tuple(
            ProblemFound(unit.file, unit.unit, sentence)
            for unit in plugins.units
            for sentence in unchecked_properties(unit.parameters)
        ),
    )


def _units_as_text(found: ProxyCheck, *, whole: bool) -> str:
    headers = ("unit", "kind", "description", *(("file", "parameters") if whole else ()))
    rows = []
    for unit in found.units:
        more = (unit.file, unit.parameters.replace(";", "\n")) if whole else ()
        rows.append((unit.unit, unit.kind, "\n".join(textwrap.wrap(unit.description, width=60)), *more))
    parts = [table(rows, headers) if rows else "There is no unit."]
    for title, problems in (("Problems", found.problems), ("Not checked", found.unchecked)):
        if problems:
            parts.append(lines("\n".join([f"{title}:", *[f"  {problem}" for problem in problems]])))
    return "\n\n".join(parts)


def _call(options: argparse.Namespace) -> int:
    """Make the call and print its answer. Returns 1 when a unit failed, else 0. Raises `UserError`."""
    url = options.url or _url(settings.load(options.config).server)
    started = time.monotonic()
    answer = _answer_of(url, options.method, _parameters(options))
    seconds = time.monotonic() - started
    if options.json:
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    else:
        print(_as_text(options.method, answer), f"answered in {seconds * 1e3:.1f} ms", sep="\n")
    return int(bool(answer.get("result_code", 0)))


def _parameters(options: argparse.Namespace) -> list[Any]:
    if options.method == "discover":
        return []
    properties = dict(_split_property(text) for text in options.property)
    if options.method == "runLoadBalancing":
        return [options.unit, options.host, properties]
    units = options.unit if options.method == "runFilters" else [[unit, 1] for unit in options.unit]
    return [units, options.host, options.vm, properties]


def _split_property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--property {text!r} is not of the form NAME=VALUE")
    return name, value


def _answer_of(url: str, method: str, parameters: list[Any]) -> Any:
    import http.client
    import xmlrpc.client

    headers = [(settings.TROUBLE_SHOOTING, "1")]
    try:
        with xmlrpc.client.ServerProxy(url, headers=headers, context=any_certificate()) as proxy:
            return getattr(proxy, method)(*parameters)
    except xmlrpc.client.Fault as fault:
        raise UserError(f"the proxy refused the call: {fault.faultString}") from fault
    except xmlrpc.client.ProtocolError as error:
        hint = "; root may call, and whom [server] allowed_users names" if error.errcode == 403 else ""
        raise UserError(
            f"the proxy at {shown(url)} answered with HTTP status {error.errcode} {error.errmsg}{hint}"
        ) from error
    except (OSError, http.client.HTTPException, xmlrpc.client.Error) as error:
        said = redacted(str(error), url)
        raise UserError(f"no proxy answers at {shown(url)}: {said}; is it running there?") from error


def _url(server: settings.Server) -> str:
    host, port = split_address(server.listen)
    scheme = "https" if server.tls_certificate else "http"
    return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}/"


def _as_text(method: str, answer: Any) -> str:
    if method == "discover":
        rows = [(kind, name, *facts) for kind, units in answer.items() for name, facts in units.items()]
        return table(rows, ("kind", "unit", "description", "parameters"))
    lines = [
        f"{unit}: {sentence}" for unit, reported in answer["plugin_errors"].items() for sentence in reported
    ]
    result = answer["result"]
    if method == "runCostFunctions":
        shown = table(result, ("host", "weight", "unit"))
    elif method == "runFilters":
        shown = "\n".join(["accepted hosts:", *[f"  {host}" for host in result]])
    else:
        shown = f"move VM {result[0]} to one of {', '.join(result[1])}" if result[0] else "nothing to move"
    return "\n".join([*lines, shown])


if __name__ == "__main__":
    sys.exit(main())
