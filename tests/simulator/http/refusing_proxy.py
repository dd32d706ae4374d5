"""An external scheduler with one filter that takes no host, spoken to over real XML-RPC."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any
from xmlrpc.server import SimpleXMLRPCServer


class RefusingProxy:
    """Runs while it is entered, and remembers what it was asked: the VM and the hosts of each filter call."""

    def __init__(self, unit: str) -> None:
        self._unit = unit
        self._server = SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False, allow_none=True)
        self._server.register_function(self._discover, "discover")
        self._server.register_function(self._run_filters, "runFilters")
        self.filtered: list[tuple[str, tuple[str, ...]]] = []
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"

    def __enter__(self) -> RefusingProxy:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _discover(self) -> dict[str, Any]:
        return {"filters": {self._unit: ["Takes no host", ""]}, "scores": {}, "balance": {}}

    def _run_filters(self, names: list[str], hosts: list[str], vm: str, properties: Any) -> dict[str, Any]:
        self.filtered.append((vm, tuple(hosts)))
        return {"result_code": 0, "result": [], "plugin_errors": {}, "errors": []}
