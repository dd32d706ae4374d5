"""The commands of a person: call a running proxy, and check plugins."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import textwrap
import time
import xmlrpc.client
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from ovirt_scheduler_proxy.plugins import load_all
from ovirt_scheduler_proxy.scheduler import Plugins
from ovirt_scheduler_proxy.service import TROUBLE_SHOOTING
from ovirt_scheduler_proxy.settings import Settings
from ovirt_scheduler_proxy.units import ProblemFound, Unit, unchecked_properties
from ovirt_scheduler_proxy.worker.answers import lines
from ovirt_service.addresses import redacted, shown, split_address
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError
from ovirt_service.text import table


def call(settings: Settings, options: argparse.Namespace) -> int:
    """Make the call and print its answer. Returns 1 when a unit failed, else 0. Raises `UserError`."""
    url = options.url or _url(settings)
    started = time.monotonic()
    answer = _call(url, options.method, _parameters(options))
    seconds = time.monotonic() - started
    print(
        json.dumps(answer, indent=2, ensure_ascii=False) if options.json else _as_text(options.method, answer)
    )
    if not options.json:
        print(f"answered in {seconds * 1e3:.1f} ms")
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


def _call(url: str, method: str, parameters: list[Any]) -> Any:
    headers = [(TROUBLE_SHOOTING, "1")]
    try:
        with xmlrpc.client.ServerProxy(url, headers=headers) as proxy:
            return getattr(proxy, method)(*parameters)
    except xmlrpc.client.Fault as fault:
        raise UserError(f"the proxy refused the call: {fault.faultString}") from fault
    except xmlrpc.client.ProtocolError as error:
        hint = "; root may call, and whom [server] allowed_users names" if error.errcode == 403 else ""
        raise UserError(
            f"the proxy at {shown(url)} answered with HTTP status {error.errcode} {error.errmsg}{hint}"
        ) from error
    except (OSError, xmlrpc.client.Error) as error:
        said = redacted(str(error), url)
        raise UserError(f"no proxy answers at {shown(url)}: {said}; is it running there?") from error


def _url(settings: Settings) -> str:
    host, port = split_address(settings.server.listen)
    scheme = "https" if settings.server.tls_certificate else "http"
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


#: Descriptions are wrapped at this many characters.
_WIDTH = 60


class CheckedUnit(msgspec.Struct, frozen=True):
    """A policy unit that a plugin offers."""

    unit: str
    #: `filter`, `score` or `balance`.
    kind: str
    file: str
    #: Its parameters with the patterns of their values, as the engine gets them.
    parameters: str
    description: str


class ProxyCheck(msgspec.Struct, frozen=True):
    """The policy units of all plugin folders, and what is wrong."""

    units: tuple[CheckedUnit, ...]
    problems: tuple[ProblemFound, ...]
    #: What only the engine can judge.
    unchecked: tuple[ProblemFound, ...]


def check(settings: Settings, as_json: bool, *, whole: bool) -> int:
    """Print the units and problems of all plugin folders, and files and parameters if `whole`.

    Returns 1 when there is a problem, else 0.
    """
    logging.disable()  # what is wrong is printed below
    workers = msgspec.structs.replace(settings.workers, warm=1)
    plugins = asyncio.run(_load(msgspec.structs.replace(settings, workers=workers)))
    problems = (*plugins.problems, *_unknown_units(settings, plugins))
    unchecked = tuple(
        ProblemFound(str(unit.file), unit.name, sentence)
        for unit in plugins.units
        for sentence in unchecked_properties(unit.properties)
    )
    if as_json:
        found = ProxyCheck(tuple(map(_checked, plugins.units)), problems, unchecked)
        print(json.dumps(msgspec.to_builtins(found), indent=2))
    else:
        shown = {"Problems": problems, "Not checked": unchecked}
        print(_units_as_text(plugins.units, shown, whole=whole))
    return 1 if problems else 0


def _unknown_units(settings: Settings, plugins: Plugins) -> Iterator[ProblemFound]:
    """Units that the configuration speaks of and no plugin offers."""
    known = {unit.name for unit in plugins.units}
    for name in settings.units:
        if name not in known:
            sentence = f"[units.{name}] in the configuration: no plugin has such a unit{nearest(name, known)}"
            yield ProblemFound("", name, sentence)


async def _load(settings: Settings) -> Plugins:
    plugins = await load_all(settings)
    for pool in plugins.pools.values():
        await pool.close()
    return plugins


def _units_as_text(units: Sequence[Unit], found: Mapping[str, Sequence[ProblemFound]], *, whole: bool) -> str:
    headers = ("unit", "kind", "description", *(("file", "parameters") if whole else ()))
    rows = [_row(unit, whole=whole) for unit in units]
    parts = [table(rows, headers) if rows else "There is no unit."]
    for title, problems in found.items():
        if problems:
            parts.append(lines("\n".join([f"{title}:", *[f"  {problem}" for problem in problems]])))
    return "\n\n".join(parts)


def _row(unit: Unit, *, whole: bool) -> tuple[str, ...]:
    description = "\n".join(textwrap.wrap(unit.description, _WIDTH))
    more = (str(unit.file), unit.properties.replace(";", "\n")) if whole else ()
    return unit.name, unit.kind.value, description, *more


def _checked(unit: Unit) -> CheckedUnit:
    return CheckedUnit(unit.name, unit.kind.value, str(unit.file), unit.properties, unit.description)
