"""A scheduler proxy for tests: a real XML-RPC server that answers what the test says, and remembers."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from typing import Any
from xmlrpc.server import SimpleXMLRPCRequestHandler, SimpleXMLRPCServer

DISCOVERY = {
    "filters": {"AffinityFilter": ["keeps rules", "affinity_strict=(true|false)"]},
    "scores": {"SoftAffinityWeight": ["prefers", ""]},
    "balance": {"HaReservationBalance": ["balances", ""]},
}


class _Server(ThreadingMixIn, SimpleXMLRPCServer):
    """Answers several calls at once, as the real proxy does."""


class _Handler(SimpleXMLRPCRequestHandler):
    rpc_paths = ()


class Proxy:
    """What each method answers; by default every host is fine and there is nothing to do."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.url = ""
        self.discover: Callable[..., Any] = lambda: DISCOVERY
        self.run_filters: Callable[..., Any] = lambda names, hosts, vm, properties: reply(hosts)
        self.run_cost_functions: Callable[..., Any] = lambda *_: reply([])
        self.run_load_balancing: Callable[..., Any] = lambda *_: reply(["", []])

    def _dispatch(self, method: str, parameters: tuple[Any, ...]) -> Any:
        self.calls.append((method, *parameters))
        answers = {
            "discover": self.discover,
            "runFilters": self.run_filters,
            "runCostFunctions": self.run_cost_functions,
            "runLoadBalancing": self.run_load_balancing,
        }
        return answers[method](*parameters)


def reply(result: Any, code: Any = 0, **more: Any) -> dict[str, Any]:
    return {"result_code": code, "result": result, "plugin_errors": {}, "errors": [], **more}


@contextmanager
def running_proxy() -> Iterator[Proxy]:
    proxy = Proxy()
    with _Server(("127.0.0.1", 0), _Handler, logRequests=False, allow_none=True) as server:
        server.register_instance(proxy)
        proxy.url = f"http://127.0.0.1:{server.server_address[1]}/"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
