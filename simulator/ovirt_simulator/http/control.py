"""The simulator's own addresses under /simulator: time, accidents, disturbances. JSON, no login.

`_ANSWERS` lists them; docs/simulator.md says what each does.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, TypeVar

import msgspec
from werkzeug import Request, Response
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map, MapAdapter, Rule

from ovirt_placement.model import state_file
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.rejections import Rejected
from ovirt_simulator.core.settings import MigrationFault, UpgradeFault
from ovirt_simulator.http import markup
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
            return found if isinstance(found, Response) else markup.json({} if found is None else found)
        except HTTPException as error:
            return markup.json({"error": error.description}, error.code or 500)
        except (msgspec.DecodeError, re.error, ValueError) as error:
            return markup.json({"error": str(error)}, 400)
        except Rejected as error:
            return markup.json({"error": str(error)}, error.http_status)
        except LookupError as error:
            return markup.json({"error": f"no such thing: {error}"}, 404)


def _state(control: Control, _: Request) -> Response:
    return Response(state_file.dumps(control.engine.snapshot()), content_type=markup.JSON)


def _advance(control: Control, request: Request) -> dict[str, Any]:
    control.engine.advance(_read(request, Advance).seconds)
    return {"now": control.engine.queries.now}


def _expect(control: Control, asked: MigrationFaults | UpgradeFaults) -> None:
    identity = asked.vm if isinstance(asked, MigrationFaults) else asked.host
    control.engine.faults.expect(asked, asked.count, identity)


_ANSWERS: dict[str, Callable[..., Any]] = {
    "GET /state": _state,
    "POST /advance": _advance,
    "POST /hosts/<host>/fail": lambda control, _, host: control.engine.hosts.fail(host),
    "POST /hosts/<host>/recover": lambda control, _, host: control.engine.hosts.recover(host),
    "POST /hosts/<host>/updates": lambda control, _, host: control.engine.host_upgrades.offer(host),
    "POST /vms/<vm>/crash": lambda control, _, vm: control.engine.vms.crash(vm),
    "POST /migrations/faults": lambda control, asked: _expect(control, _read(asked, MigrationFaults)),
    "DELETE /migrations/faults": lambda control, _: control.engine.faults.clear(),
    "POST /upgrades/faults": lambda control, asked: _expect(control, _read(asked, UpgradeFaults)),
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


# -- What goes wrong between client and engine on demand: errors, slow and lost answers.


#: Where an answer gets lost: with the request, which is then never carried out, or on its way back.
Drop = Literal["request", "answer"]


class Disturbance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens to requests that fit, in place of or on top of their answer."""

    #: Only this method; None fits all.
    method: str | None = None
    #: A regular expression that must occur in the path and query.
    path: str = ""
    #: Answer with this status and the container's page, and carry nothing out.
    status: int | None = None
    #: Wait this many real seconds first, or until the disturbances are cleared.
    delay_seconds: float = 0.0
    #: Hang up before or after carrying the request out.
    drop: Drop | None = None
    #: For how many requests; None for all to come.
    times: int | None = 1

    def fits(self, method: str, path: str) -> bool:
        return self.method in (None, method) and re.search(self.path, path) is not None


class Disturbances:
    """The disturbances to come; the first one that fits a request is the one it meets."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[Disturbance] = []
        self._cleared = threading.Event()

    def add(self, disturbance: Disturbance) -> None:
        re.compile(disturbance.path)
        with self._lock:
            self._waiting.append(disturbance)

    def clear(self) -> None:
        """Have none any more: what was delayed goes on at once."""
        with self._lock:
            self._waiting.clear()
            cleared, self._cleared = self._cleared, threading.Event()
        cleared.set()

    def delay(self, disturbance: Disturbance) -> None:
        """Wait as long as this one says."""
        with self._lock:
            cleared = self._cleared
        cleared.wait(disturbance.delay_seconds)

    @property
    def waiting(self) -> list[Disturbance]:
        """Those that have not been used up."""
        with self._lock:
            return list(self._waiting)

    def take_disturbance(self, method: str, path: str) -> Disturbance | None:
        """Give what this request meets, if anything, and use it up by one."""
        with self._lock:
            for index, found in enumerate(self._waiting):
                if found.fits(method, path):
                    if found.times is not None:
                        left = msgspec.structs.replace(found, times=found.times - 1)
                        self._waiting[index : index + 1] = [left] * (found.times > 1)
                    return found
        return None
