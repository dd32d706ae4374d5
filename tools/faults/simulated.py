"""A simulated engine behind real HTTP and a wire that distorts, in which time passes quickly."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ovirt_placement.model import Snapshot
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.server import Server, serve
from tests.proxy.running import eventually
from tests.scenarios.stage import START
from tools.faults.invariants import Recorder
from tools.faults.wire import Wire

#: Simulated seconds a second: a migration then takes some 140 ms.
_SCALE = 25.0
_STEP_SECONDS = 0.01


class Simulated:
    """The engine outlives its server, as VMs outlive the engine."""

    def __init__(self, state: Snapshot) -> None:
        self.engine = Engine.from_snapshot(state, clock=START, settings=PROMPT)
        self.recorder = Recorder(self.engine, {vm.id for vm in state.vms if not vm.migratable})
        self.wire = Wire()
        self._server = self._serve("127.0.0.1:0")
        self._stop = threading.Event()
        self._time = threading.Thread(target=self._pass_time)
        self._time.start()

    @property
    def api_url(self) -> str:
        return self._server.api_url

    def restart(self, seconds: float) -> None:
        """End the server with all its sessions; another takes its place after this many simulated seconds."""
        address = self._server.url.removeprefix("http://")
        self._server.close()
        self.let_pass(seconds)
        self._server = self._serve(address)

    def expire_sessions(self) -> None:
        self._server.tokens.revoke_all()

    def let_pass(self, seconds: float) -> None:
        """Wait until this many simulated seconds have passed."""
        until = self._elapsed() + seconds
        eventually(lambda: self._elapsed() >= until)

    def close(self) -> None:
        self._server.close()
        self._stop.set()
        self._time.join()

    def _serve(self, listen: str) -> Server:
        server = serve(self.engine, listen)
        web: Any = server._server
        web.wsgi_app = self.wire.around(web.wsgi_app)
        return server

    def _elapsed(self) -> float:
        return self.engine._backend.timeline.elapsed

    def _pass_time(self) -> None:
        while not self._stop.wait(_STEP_SECONDS):
            self.engine.advance(_STEP_SECONDS * _SCALE)


@contextmanager
def simulated(state: Snapshot) -> Iterator[Simulated]:
    made = Simulated(state)
    try:
        yield made
    finally:
        made.close()
