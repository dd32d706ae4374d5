"""A proxy with few workers and short times, and what can be seen of its workers from outside."""

from contextlib import suppress

import psutil

from tests.proxy.running import RunningProxy, units

HOSTS = ["h1", "h2"]
WARM = 4

HEALTHY = units(Healthy="return hosts[1:]")
#: There is nothing wrong in it.
GOOD = '''
class Good:
    properties_validation = "good_limit=[0-9]+"
    def do_filter(self, hosts, vm, args):
        """Accepts all"""
        return hosts
'''

CONFIG = f"""
[calls]
deadline_seconds = 1
[workers]
warm = {WARM}
most = {WARM}
memory_mib = 64
load_seconds = 0.5
"""
RELOADING = f"{CONFIG}[reload]\nwatch_seconds = 0.05\n"


def serves(proxy: RunningProxy, pid: int) -> bool:
    return pid in [worker.pid for worker in proxy.workers()]


def kill_workers(proxy: RunningProxy) -> None:
    for worker in proxy.workers():
        # One whose parent has just ended is gone by itself.
        with suppress(psutil.NoSuchProcess):
            worker.kill()


def ready(proxy: RunningProxy) -> float:
    return _of_folder(proxy, "workers")


def restarts(proxy: RunningProxy) -> float:
    return _of_folder(proxy, "worker_restarts_total")


def _of_folder(proxy: RunningProxy, name: str) -> float:
    (found,) = (value for (named, *_), value in proxy.metrics().items() if named == name)
    return found
