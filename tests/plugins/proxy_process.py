"""A real scheduler proxy in a process of its own, with our plugins, called as the engine calls it."""

import socket
import xmlrpc.client
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.paths import PLUGINS
from tests.proxy.running import handing_over, running


@contextmanager
def proxy_url(environment: Mapping[str, str], plugins: Path = PLUGINS) -> Iterator[str]:
    """Start the proxy on a free port, say where it listens, and end it."""
    with running(plugins, environment=environment) as proxy:
        yield proxy.url


@contextmanager
def two_proxies(environment: Mapping[str, str]) -> Iterator[str]:
    """Start two proxies that share a socket, so that calls reach now the one, now the other."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        listen = f"127.0.0.1:{server.getsockname()[1]}"
        one, other = (
            running(
                PLUGINS,
                environment=environment,
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
    with running(PLUGINS, environment=environment) as proxy, proxy.client() as client:
        yield client
