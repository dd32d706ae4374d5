"""A real Apache of the system, in front of what a test serves."""

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.web.running import PATIENCE_SECONDS

_MODULES = ("mpm_event", "authz_core", "proxy", "proxy_http", "headers")


@contextmanager
def apache(folder: Path, port: int, block: str, modules: Sequence[str] = ()) -> Iterator[None]:
    """Run one at this port of this machine, with these lines of configuration."""
    loaded = "\n".join(
        f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in (*_MODULES, *modules)
    )
    file = folder / "apache.conf"
    file.write_text(
        f"{loaded}\nServerRoot {folder}\nServerName localhost\nListen 127.0.0.1:{port}\n"
        f"PidFile {folder}/apache.pid\nErrorLog {folder}/apache.log\nUser www-data\nGroup www-data\n{block}"
    )
    with subprocess.Popen(["apache2", "-f", str(file), "-DFOREGROUND"]) as process:
        try:
            _await(port, folder / "apache.log")
            yield
        finally:
            process.terminate()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        found: int = free.getsockname()[1]
        return found


def _await(port: int, log: Path) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            assert time.monotonic() < until, log.read_text() if log.exists() else "no log"
            time.sleep(0.05)
        else:
            return
