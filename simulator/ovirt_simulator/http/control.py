"""The simulator's own addresses under /simulator: time, accidents, disturbances. JSON, no login.

`_ANSWERS` lists them; docs/simulator.md says what each does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import msgspec
from werkzeug import Request, Response
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, MapAdapter, Rule

from ovirt_placement.model.files import state_file
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.faults import MigrationFault, UpgradeFault
from ovirt_simulator.core.rejections import Rejected
from ovirt_simulator.http.disturbances import Disturbance, Disturbances
from ovirt_simulator.http.markup import JSON
from ovirt_simulator.http.sso import Tokens

Content = TypeVar("Content")


class Advance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much simulated time shall pass, in seconds."""

    seconds: float


class MigrationFaults(MigrationFault, frozen=True, forbid_unknown_fields=True):
    """What the next `count` migrations (of a VM, by id) meet."""

    count: int = 1
    vm: str | None = None


class UpgradeFaults(UpgradeFault, frozen=True, forbid_unknown_fields=True):
    """What the next `count` upgrades (of a host, by id) meet."""

    count: int = 1
    host: str | None = None


class Control:
    """Answers requests below /simulator."""

    def __init__(self, tokens: Tokens, engine: Engine) -> None:
        #: Requests that got past the log-in, by the user's full name.
        self.made: Counter[str] = Counter()
        self.tokens = tokens
        self.disturbances = Disturbances()
        self.engine = engine

    def __call__(self, request: Request, path: str) -> Response:
        try:
            endpoint, arguments = _addresses().match(path, request.method)
            found = endpoint(self, request, **arguments)
            return found if isinstance(found, Response) else _json({} if found is None else found)
        except HTTPException as error:
            return _json({"error": error.description}, error.code or 500)
        except (msgspec.DecodeError, re.error, ValueError) as error:
            return _json({"error": str(error)}, 400)
        except Rejected as error:
            return _json({"error": str(error)}, error.http_status)
        except LookupError as error:
            return _json({"error": f"no such thing: {error}"}, 404)


def _state(control: Control, _: Request) -> Response:
    return Response(state_file.dumps(control.engine.snapshot()), content_type=JSON)


def _advance(control: Control, request: Request) -> dict[str, Any]:
    control.engine.advance(_read(request, Advance).seconds)
    return {"now": control.engine.queries.now}


def _fail_migrations(control: Control, request: Request) -> None:
    asked = _read(request, MigrationFaults)
    control.engine.faults.next_migrations(asked, count=asked.count, vm_id=asked.vm)


def _fail_upgrades(control: Control, request: Request) -> None:
    asked = _read(request, UpgradeFaults)
    control.engine.faults.next_upgrades(asked, count=asked.count, host_id=asked.host)


_ANSWERS: dict[str, Callable[..., Any]] = {
    "GET /state": _state,
    "POST /advance": _advance,
    "POST /hosts/<host>/fail": lambda control, _, host: control.engine.hosts.fail(host),
    "POST /hosts/<host>/recover": lambda control, _, host: control.engine.hosts.recover(host),
    "POST /hosts/<host>/updates": lambda control, _, host: control.engine.host_upgrades.offer(host),
    "POST /vms/<vm>/crash": lambda control, _, vm: control.engine.vms.crash(vm),
    "POST /migrations/faults": _fail_migrations,
    "DELETE /migrations/faults": lambda control, _: control.engine.faults.clear(),
    "POST /upgrades/faults": _fail_upgrades,
    "GET /disturbances": lambda control, _: control.disturbances.waiting,
    "POST /disturbances": lambda control, asked: control.disturbances.add(_read(asked, Disturbance)),
    "DELETE /disturbances": lambda control, _: control.disturbances.clear(),
    "POST /tokens/expire": lambda control, _: {"expired": control.tokens.revoke_all()},
    "GET /requests": lambda control, _: dict(control.made),
}


@cache
def _addresses() -> MapAdapter:
    """Made once: it takes longer than all the rest of a simulator's start."""
    found = ((address.split(" "), answer) for address, answer in _ANSWERS.items())
    return Map([Rule(path, endpoint=answer, methods=[method]) for (method, path), answer in found]).bind("")


def _read(request: Request, content: type[Content]) -> Content:
    return msgspec.json.decode(request.get_data(), type=content)


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value) + b"\n", status, content_type=JSON)
