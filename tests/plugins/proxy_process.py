"""A real scheduler proxy in a process of its own, with our plugins, called as the engine calls it."""

from __future__ import annotations

import subprocess
import sys
import xmlrpc.client
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

PLUGINS = Path(__file__).parents[2] / "plugins"

_PROXY = (
    sys.executable,
    "-c",
    "import sys; from ovirt_scheduler_proxy.cli import main; sys.exit(main())",
    "run",
    "--listen",
    "127.0.0.1:0",
    "--plugins",
    str(PLUGINS),
)


@contextmanager
def running_proxy(environment: Mapping[str, str]) -> Iterator[xmlrpc.client.ServerProxy]:
    """Start the proxy on a free port, and end it."""
    with subprocess.Popen(
        _PROXY, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip().rpartition(" ")[2]
            with xmlrpc.client.ServerProxy(url) as client:
                yield client
        finally:
            process.terminate()
