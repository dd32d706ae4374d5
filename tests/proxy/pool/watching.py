"""A proxy with few workers and short times, and what can be seen of its workers from outside."""

from __future__ import annotations

import re
import urllib.request
from contextlib import suppress

import psutil

from ..running import RunningProxy

HOSTS = ["h1", "h2"]
WARM = 4

HEALTHY = """
class Healthy:
    def do_filter(self, hosts, vm, args):
        return hosts[1:]
"""

CONFIG = f"""
[calls]
deadline_seconds = 1
[workers]
warm = {WARM}
most = {WARM}
memory_mib = 64
load_seconds = 0.5
"""


def serves(proxy: RunningProxy, pid: int) -> bool:
    return pid in [worker.pid for worker in proxy.workers()]


def kill_workers(proxy: RunningProxy) -> None:
    for worker in proxy.workers():
        # One whose parent has just ended is gone by itself.
        with suppress(psutil.NoSuchProcess):
            worker.kill()


def ready(proxy: RunningProxy) -> float:
    return _value(metrics(proxy), "ovirt_scheduler_proxy_workers")


def metrics(proxy: RunningProxy) -> str:
    with urllib.request.urlopen(f"{proxy.url}metrics") as response:
        return str(response.read().decode())


def restarts(page: str) -> float:
    return _value(page, "ovirt_scheduler_proxy_worker_restarts_total")


def _value(page: str, name: str) -> float:
    found = re.search(rf"^{name}\{{.*\}} ([\d.e+]+)$", page, re.MULTILINE)
    assert found
    return float(found[1])
