"""The page behind a real Apache, as docs/web.md shows: names, log-in, and the event stream."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.paths import CHECKOUT
from tests.web.conftest import STATE
from tests.web.running import COOKIE, PATIENCE_SECONDS, ROOT, paged

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("apache2") is None, reason="there is no apache2"),
]

_MODULES = ("mpm_event", "authz_core", "proxy", "proxy_http", "headers")


def test_the_page_behind_an_apache(tmp_path: Path) -> None:
    port, behind = _free_port(), _free_port()
    lines = f'origins = ["http://localhost:{port}"]\ntrusted_proxies = ["127.0.0.1"]'
    (block,) = re.findall(r"```apache\n(.*?)```", (CHECKOUT / "docs" / "web.md").read_text(), re.DOTALL)
    block = block.replace("127.0.0.1:8446", f"127.0.0.1:{behind}").replace(
        "X-Forwarded-Proto https", "X-Forwarded-Proto http"
    )
    root = f"http://localhost:{port}{ROOT}"
    with paged(
        tmp_path, STATE, web=lines, listen=f"127.0.0.1:{behind}", named=f"http://localhost:{port}"
    ) as page:
        with _apache(tmp_path, port, block):
            assert requests.get(f"{root}/log-in", timeout=30).status_code == 200
            form = {"name": "admin@internal", "password": "password"}
            headers = {"Origin": f"http://localhost:{port}"}
            answer = requests.post(
                f"{root}/log-in", data=form, headers=headers, allow_redirects=False, timeout=30
            )
            assert answer.status_code == 303
            found = re.search(rf"{COOKIE}=([^;]+)", answer.headers["set-cookie"])
            assert found
            cookie = {"Cookie": f"{COOKIE}={found[1]}"}
            assert "databases" in requests.get(f"{root}/cluster/c1", headers=cookie, timeout=30).text
            with requests.get(f"{root}/events", headers=cookie, stream=True, timeout=30) as stream:
                # The first event comes at once: Apache keeps nothing back.
                assert next(stream.iter_lines()) == b"event: state"
        assert '"address":"127.0.0.1"' in page.audit()


@contextmanager
def _apache(folder: Path, port: int, block: str) -> Iterator[None]:
    modules = "\n".join(
        f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in _MODULES
    )
    file = folder / "apache.conf"
    file.write_text(
        f"{modules}\nServerRoot {folder}\nServerName localhost\nListen 127.0.0.1:{port}\n"
        f"PidFile {folder}/apache.pid\nErrorLog {folder}/apache.log\nUser www-data\nGroup www-data\n{block}"
    )
    with subprocess.Popen(["apache2", "-f", str(file), "-DFOREGROUND"]) as process:
        try:
            _await(port, folder / "apache.log")
            yield
        finally:
            process.terminate()


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


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        found: int = free.getsockname()[1]
        return found
