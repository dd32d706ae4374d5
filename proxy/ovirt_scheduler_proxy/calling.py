"""`ovirt-scheduler-proxy call`: speaks to a running proxy as the engine does, for trouble-shooting."""

from __future__ import annotations

import argparse
import json
import time
import xmlrpc.client
from typing import Any

from ovirt_service.addresses import redacted, shown, split_address
from ovirt_service.errors import UserError
from ovirt_service.tables import table

from .endpoint import TROUBLE_SHOOTING
from .settings import Settings


def call(settings: Settings, options: argparse.Namespace) -> int:
    """Make the call and print its answer. Returns 1 when a unit failed, else 0. Raises `UserError`."""
    url = options.url or _url(settings)
    started = time.monotonic()
    answer = _ask(url, options.method, _parameters(options))
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


def _ask(url: str, method: str, parameters: list[Any]) -> Any:
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
