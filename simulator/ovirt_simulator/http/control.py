"""The simulator's own addresses under /simulator: time, accidents, disturbances. JSON, no login.

GET    /state                  the present state, as a state file
POST   /advance                {"seconds": 5}
POST   /hosts/ID/fail          the host crashes
POST   /hosts/ID/recover       ... and comes back
POST   /hosts/ID/updates       there are updates for the host
POST   /vms/ID/crash           the VM dies
POST   /migrations/faults      {"fail": true} or hang, refuse, slow; with "count" and "vm": the next ones
DELETE /migrations/faults      migrations and upgrades go well again
POST   /upgrades/faults        {"fail": true} or stay_away; with "count" and "host": the next upgrades
GET    /disturbances           what waits to happen to requests
POST   /disturbances           {"method": "POST", "path": "/migrate", "drop": "answer"}; see Disturbance
DELETE /disturbances           nothing goes wrong any more
POST   /tokens/expire          every client must log in again
GET    /requests               how many requests each user has made to the API
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, TypeVar

import msgspec
from werkzeug import Request, Response
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, MapAdapter, Rule

from ovirt_placement.model import state_file
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.faults import MigrationFault, UpgradeFault
from ovirt_simulator.core.rejections import Rejected
from ovirt_simulator.http.answers import JSON
from ovirt_simulator.http.disturbances import Disturbance, Disturbances
from ovirt_simulator.http.sso import Tokens
from ovirt_simulator.http.tally import Tally

Content = TypeVar("Content")


class Advance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much simulated time shall pass, in seconds."""

    seconds: float


class MigrationFaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the next `count` migrations (of a VM, by id) meet; see `MigrationFault`."""

    fail: bool = False
    hang: bool = False
    slow: float = 1.0
    refuse: bool = False
    count: int = 1
    vm: str | None = None


class UpgradeFaults(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the next `count` upgrades (of a host, by id) meet; see `UpgradeFault`."""

    fail: bool = False
    stay_away: bool = False
    count: int = 1
    host: str | None = None


class Control:
    """Answers requests below /simulator: what goes wrong between client and engine."""

    def __init__(self, tokens: Tokens, disturbances: Disturbances) -> None:
        self.tally = Tally()
        self._tokens = tokens
        self._disturbances = disturbances

    @classmethod
    def rules(cls) -> Iterator[Rule]:
        """Its addresses, each with the method that answers there."""
        yield Rule("/disturbances", endpoint=cls._list_disturbances, methods=["GET"])
        yield Rule("/disturbances", endpoint=cls._add_disturbance, methods=["POST"])
        yield Rule("/disturbances", endpoint=cls._clear_disturbances, methods=["DELETE"])
        yield Rule("/tokens/expire", endpoint=cls._expire_tokens, methods=["POST"])
        yield Rule("/requests", endpoint=cls._count_requests, methods=["GET"])

    @classmethod
    @cache
    def _addresses(cls) -> MapAdapter:
        """Made once: it takes longer than all the rest of a simulator's start."""
        return Map([*cls.rules()]).bind("")

    def __call__(self, request: Request, path: str) -> Response:
        try:
            endpoint, arguments = self._addresses().match(path, request.method)
            response: Response = endpoint(self, request, **arguments)
            return response
        except HTTPException as error:
            return _json({"error": error.description}, error.code or 500)
        except (msgspec.DecodeError, re.error, ValueError) as error:
            return _json({"error": str(error)}, 400)
        except Rejected as error:
            return _json({"error": str(error)}, error.http_status)
        except LookupError as error:
            return _json({"error": f"no such thing: {error}"}, 404)

    def _list_disturbances(self, _: Request) -> Response:
        return _json(self._disturbances.waiting)

    def _add_disturbance(self, request: Request) -> Response:
        self._disturbances.add(_read(request, Disturbance))
        return _json({})

    def _clear_disturbances(self, _: Request) -> Response:
        self._disturbances.clear()
        return _json({})

    def _expire_tokens(self, _: Request) -> Response:
        return _json({"expired": self._tokens.revoke_all()})

    def _count_requests(self, _: Request) -> Response:
        return _json(self.tally.made())


class EngineControl(Control):
    """The controls of a simulated engine; a recording, in which nothing moves, has only `Control`'s."""

    def __init__(self, tokens: Tokens, disturbances: Disturbances, engine: Engine) -> None:
        super().__init__(tokens, disturbances)
        self._engine = engine

    @classmethod
    def rules(cls) -> Iterator[Rule]:
        """Besides those, what happens to hosts and VMs, and when."""
        yield from super().rules()
        yield Rule("/state", endpoint=cls._state, methods=["GET"])
        yield Rule("/advance", endpoint=cls._advance, methods=["POST"])
        yield Rule("/hosts/<host_id>/fail", endpoint=cls._fail, methods=["POST"])
        yield Rule("/hosts/<host_id>/recover", endpoint=cls._recover, methods=["POST"])
        yield Rule("/hosts/<host_id>/updates", endpoint=cls._offer_updates, methods=["POST"])
        yield Rule("/vms/<vm_id>/crash", endpoint=cls._crash, methods=["POST"])
        yield Rule("/migrations/faults", endpoint=cls._fail_migrations, methods=["POST"])
        yield Rule("/upgrades/faults", endpoint=cls._fail_upgrades, methods=["POST"])
        yield Rule("/migrations/faults", endpoint=cls._clear_migration_faults, methods=["DELETE"])

    def _state(self, _: Request) -> Response:
        return Response(state_file.dumps(self._engine.snapshot()), content_type=JSON)

    def _advance(self, request: Request) -> Response:
        self._engine.advance(_read(request, Advance).seconds)
        return _json({"now": self._engine.queries.now})

    def _fail(self, _: Request, host_id: str) -> Response:
        self._engine.hosts.fail(host_id)
        return _json({})

    def _recover(self, _: Request, host_id: str) -> Response:
        self._engine.hosts.recover(host_id)
        return _json({})

    def _offer_updates(self, _: Request, host_id: str) -> Response:
        self._engine.host_upgrades.offer(host_id)
        return _json({})

    def _crash(self, _: Request, vm_id: str) -> Response:
        self._engine.vms.crash(vm_id)
        return _json({})

    def _fail_migrations(self, request: Request) -> Response:
        asked = _read(request, MigrationFaults)
        fault = MigrationFault(fail=asked.fail, hang=asked.hang, slow=asked.slow, refuse=asked.refuse)
        self._engine.faults.next_migrations(fault, count=asked.count, vm_id=asked.vm)
        return _json({})

    def _fail_upgrades(self, request: Request) -> Response:
        asked = _read(request, UpgradeFaults)
        fault = UpgradeFault(fail=asked.fail, stay_away=asked.stay_away)
        self._engine.faults.next_upgrades(fault, count=asked.count, host_id=asked.host)
        return _json({})

    def _clear_migration_faults(self, _: Request) -> Response:
        self._engine.faults.clear()
        return _json({})


def _read(request: Request, content: type[Content]) -> Content:
    return msgspec.json.decode(request.get_data(), type=content)


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value) + b"\n", status, content_type=JSON)
