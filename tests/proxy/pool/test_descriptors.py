"""A proxy with more file descriptors than `select` knows: its workers' ends are noticed as ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..running import running, write_plugins
from .watching import HEALTHY, HOSTS

#: As many as a proxy with a thousand connections has, before it starts a worker.
CROWDED = "ulimit -n 4096; for number in {1..1100}; do exec {held}</dev/null; done"
CLOSING = """
import os
class Close:
    def do_filter(self, hosts, vm, args):
        os.closerange(3, 64)
        while True:
            pass
class Exit:
    def do_filter(self, hosts, vm, args):
        os._exit(3)
"""


@pytest.mark.system
def test_more_than_select_knows(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", closing=CLOSING, healthy=HEALTHY)
    with running(folder, shell=CROWDED) as proxy:
        answer = proxy.filters(["Close", "Exit", "Healthy"], HOSTS)
        assert answer["result"] == HOSTS[1:]
        assert answer["plugin_errors"] == {
            "Close": ["closed its worker's connection to the proxy; it filtered no host"],
            "Exit": ["ended its worker process with exit status 3; it filtered no host"],
        }
        assert "Traceback" not in proxy.log
