"""A real scheduler proxy in a process of its own, with our plugins, called as the engine calls it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xmlrpc.client
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.paths import PLUGINS

_PROXY = (
    sys.executable,
    "-c",
    "import sys; from ovirt_scheduler_proxy.cli import main; sys.exit(main())",
    "run",
    "--listen",
    "127.0.0.1:0",
    "--plugins",
)


@contextmanager
def proxy_url(environment: Mapping[str, str], plugins: Path = PLUGINS) -> Iterator[str]:
    """Start the proxy on a free port, say where it listens, and end it."""
    command = [*_PROXY, str(plugins)]
    with (
        tempfile.TemporaryFile("w+") as log,
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            ready = process.stdout.readline()
            if not ready:
                log.seek(0)
                raise AssertionError(f"the proxy did not start:\n{log.read()}")
            yield ready.strip().rpartition(" ")[2]
        finally:
            process.terminate()


@contextmanager
def running_proxy(environment: Mapping[str, str]) -> Iterator[xmlrpc.client.ServerProxy]:
    """Start the proxy on a free port, and end it."""
    with proxy_url(environment) as url, xmlrpc.client.ServerProxy(url) as client:
        yield client
