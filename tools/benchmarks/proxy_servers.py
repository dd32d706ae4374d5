"""The three servers that are compared: ours, one that only echoes, and one in the old proxy's manner."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from xmlrpc.server import SimpleXMLRPCRequestHandler, SimpleXMLRPCServer

#: Units that do nothing, in both manners: they print for the old proxy and return for ours.
PLUGINS = """
import time
class Trivial:
    def do_filter(self, hosts, vm, args):
        return hosts
    def do_score(self, hosts, vm, args):
        return [(host, 0) for host in hosts]
class Printing:
    def do_filter(self, hosts, vm, args):
        print(hosts)
class Hang:
    def do_filter(self, hosts, vm, args):
        time.sleep(600)
class HangToo(Hang):
    pass
"""


class _KeepAlive(SimpleXMLRPCRequestHandler):
    protocol_version = "HTTP/1.1"


class _Threaded(ThreadingMixIn, SimpleXMLRPCServer):
    daemon_threads = True


def _echo(_: list[str], hosts: list[str], __: str, ___: dict[str, str]) -> list[str]:
    return hosts


def _weigh(units: list[list[Any]], hosts: list[str], _: str, __: dict[str, str]) -> list[list[Any]]:
    return [[host, 0, unit] for unit, _ in units for host in hosts]


class _OldManner:
    """A new Python for each unit of each call, its arguments in its command, its answer on its stdout."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, units: list[str], hosts: list[str], vm: str, args: dict[str, str]) -> list[str]:
        kept = set(hosts)
        for unit in units:
            call = f"import units; units.{unit}().do_filter({hosts!r}, {vm!r}, {args!r})"
            done = subprocess.run(
                ["python3", "-c", call], cwd=self._folder, capture_output=True, text=True, check=True
            )
            kept &= set(ast.literal_eval(done.stdout))
        return list(kept)


def serve(manner: str, folder: str) -> None:
    """Serve in one of the two manners and print the port."""
    server = _Threaded(("127.0.0.1", 0), requestHandler=_KeepAlive, logRequests=False)
    function: Any = _echo if manner == "echo" else _OldManner(folder)
    server.register_function(function, "runFilters")
    server.register_function(_weigh, "runCostFunctions")
    print(server.server_address[1], flush=True)
    server.serve_forever()


@contextmanager
def compared(manner: str, folder: Path) -> Iterator[int]:
    """Run one of the servers that ours is compared with; gives its port."""
    command = [sys.executable, "-m", "tools.benchmarks.proxy_servers", manner, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield int(process.stdout.readline() if process.stdout else 0)
        finally:
            process.terminate()


if __name__ == "__main__":
    serve(*sys.argv[1:])
