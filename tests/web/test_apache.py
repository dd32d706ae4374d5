"""The page behind a real Apache, as docs/web.md shows: names, log-in, and the event stream."""

import re
import shutil
import socket
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests

from tests.paths import CHECKOUT
from tests.web.apache import apache, free_port
from tests.web.conftest import STATE
from tests.web.running import COOKIE, ROOT, paged

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(shutil.which("apache2") is None, reason="there is no apache2"),
]


def test_the_page_behind_anapache(tmp_path: Path) -> None:
    port, behind = free_port(), free_port()
    lines = f'origins = ["http://localhost:{port}"]\ntrusted_proxies = ["127.0.0.1"]'
    (block,) = re.findall(r"```apache\n(.*?)```", (CHECKOUT / "docs" / "web.md").read_text(), re.DOTALL)
    block = block.replace("127.0.0.1:8446", f"127.0.0.1:{behind}").replace(
        "X-Forwarded-Proto https", "X-Forwarded-Proto http"
    )
    root = f"http://localhost:{port}{ROOT}"
    with paged(
        tmp_path, STATE, web=lines, listen=f"127.0.0.1:{behind}", named=f"http://localhost:{port}"
    ) as page:
        with apache(tmp_path, port, block):
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
            # People and programs come from its address: none of them locks the others out.
            wrong = {"name": "admin@internal", "password": "wrong"}
            for number in range(6):
                requests.post(f"{root}/log-in", data=wrong, headers=headers, timeout=30)
                bearer = {"Authorization": f"Bearer expired{number}"}
                assert requests.get(f"{root}/api/v1/status", headers=bearer, timeout=30).status_code == 401
            half = f"POST {ROOT}/log-in HTTP/1.1\r\nHost: localhost:{port}\r\nContent-Length: 9\r\n\r\nx"
            with ExitStack() as slow:
                for _ in range(60):
                    sender = slow.enter_context(socket.create_connection(("127.0.0.1", port)))
                    sender.sendall(half.encode())
                began = time.monotonic()
                assert requests.get(f"{root}/", headers=cookie, timeout=30).status_code == 200
                assert time.monotonic() - began < 5.0, "what is sent slowly may take twice as long"
            answer = requests.post(
                f"{root}/log-in", data=form, headers=headers, allow_redirects=False, timeout=30
            )
            assert answer.status_code == 303
        assert '"address":"127.0.0.1"' in page.audit()
