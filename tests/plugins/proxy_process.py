"""A real scheduler proxy in a process of its own, with our plugins, called as the engine calls it."""

import socket
import tempfile
import xmlrpc.client
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ovirt_scheduler_proxy.cli import main
from tests.paths import PLUGINS
from tests.processes import Forked
from tests.proxy.running import AT_ONCE, handing_over, running

_WORDS = ("run", "--listen", "127.0.0.1:0", "--plugins")


@contextmanager
def proxy_url(environment: Mapping[str, str], plugins: Path = PLUGINS) -> Iterator[str]:
    """Start the proxy on a free port, say where it listens, and end it."""
    with tempfile.TemporaryDirectory() as folder:
        log, settings = Path(folder, "log"), Path(folder, "proxy.toml")
        settings.write_text(AT_ONCE)
        with Forked(main, [*_WORDS, str(plugins), "--config", str(settings)], log, environment) as process:
            try:
                ready = process.stdout.readline()
                if not ready:
                    raise AssertionError(f"the proxy did not start:\n{log.read_text()}")
                yield ready.strip().rpartition(" ")[2]
            finally:
                process.terminate()


@contextmanager
def two_proxies(environment: Mapping[str, str], plugins: Path = PLUGINS) -> Iterator[str]:
    """Start two proxies that share a socket, so that calls reach now the one, now the other."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        listen = f"127.0.0.1:{server.getsockname()[1]}"
        one, other = (
            running(
                plugins,
                environment=dict(environment),
                listen=listen,
                shell=handing_over(server),
                pass_fds=[server.fileno()],
            )
            for _ in range(2)
        )
        with one, other:
            yield f"http://{listen}/"


@contextmanager
def running_proxy(environment: Mapping[str, str]) -> Iterator[xmlrpc.client.ServerProxy]:
    """Start the proxy on a free port, and end it."""
    with proxy_url(environment) as url, xmlrpc.client.ServerProxy(url) as client:
        yield client
