"""A simulated engine in a process of its own, our parts besides it, and words to speak to it and to wait."""

import shlex
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import ovirtsdk4
from demo.stage import Processes, ProcessFailed, address
from ovirtsdk4 import types

from ovirt_placement.model import Snapshot, state_file
from tests.configuration import PASSWORD, write_configuration
from tests.paths import PLUGINS
from tests.proxy.running import AT_ONCE, eventually

PATIENCE_SECONDS = 60
ENGINE, PROXY, _ENFORCER = "ovirt-simulator", "ovirt-scheduler-proxy", "ovirt-enforcer"
_ANY_PORT = "127.0.0.1:0"
#: How often a port is tried again that its last owner has just left.
_TRIES = 20
_PAUSE_SECONDS = 0.1


class OurProcesses(Processes):
    """The commands of this project; one may also die and come back, or be frozen as by a stalled host."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(folder, environment)
        self._words: dict[str, list[str]] = {}

    def start(self, name: str, arguments: Sequence[str]) -> str:
        ready = super().start(name, arguments)
        listening = urlsplit(address(ready)).netloc
        self._words[name] = [listening if word == _ANY_PORT else word for word in arguments]
        return ready

    def restart(self, name: str) -> None:
        """Start a process that was killed, at the address that it had."""
        for _ in range(_TRIES):
            with suppress(ProcessFailed):  # its port is not free yet
                self.start(name, self._words[name])
                return
            time.sleep(_PAUSE_SECONDS)
        raise ProcessFailed(f"{name} does not come back: {self.log(name).read_text()[-500:]}")

    def kill(self, name: str) -> None:
        """End one process as a failing power supply does."""
        process = self._running.pop(name)
        process.kill()
        process.communicate()

    def freeze(self, name: str) -> None:
        """Let a process answer nobody, and keep all that it has."""
        self._running[name].send_signal(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        self._running[name].send_signal(signal.SIGCONT)


class World:
    """A running engine, and the processes around it."""

    def __init__(
        self, processes: OurProcesses, connection: ovirtsdk4.Connection, api: str, store_url: str
    ) -> None:
        self._processes = processes
        self._system = connection.system_service()
        self._vms = self._system.vms_service()
        self.api, self.store_url = api, store_url
        self.folder = processes.folder

    @property
    def config(self) -> Path:
        return self.folder / "placement.toml"

    def calls(self, method: str, vm: str) -> int:
        """How often the engine has called a method of the proxy about a VM, as far as is reported by now."""
        return self._processes.log(PROXY).read_text().count(f"{method} vm={vm} ")

    def publish(self) -> None:
        """Run the inventory service, until the first snapshot is there."""
        self._run("ovirt-placement inventory", f"ovirt-placement inventory run --config {self.config}")

    def enforce(self) -> str:
        """Run the enforcer's daemon, and return what it says when it is ready."""
        return self._run(_ENFORCER, f"{_ENFORCER} run --config {self.config}")

    def stop_enforcing(self) -> int:
        """End the daemon, and return its exit status."""
        return self._processes.stop(_ENFORCER)

    def start(self, vm: str, host: str | None = None) -> str:
        """Start a VM, where the engine chooses if on no host, and return its host."""
        policy = types.VmPlacementPolicy(hosts=[types.Host(id=host)]) if host else None
        self._vms.vm_service(vm).start(vm=types.Vm(placement_policy=policy) if policy else None)
        self.until(lambda: self.status(vm) == "up", f"{vm} to be up")
        return self.host_of(vm)

    def change_cluster(self, vm: str, cluster: str) -> None:
        self._vms.vm_service(vm).update(types.Vm(cluster=types.Cluster(id=cluster)))

    def remove_group(self, cluster: str, group: str) -> None:
        groups = self._system.clusters_service().cluster_service(cluster).affinity_groups_service()
        groups.group_service(group).remove()

    def stop(self, vm: str) -> None:
        self._vms.vm_service(vm).stop()
        self.until(lambda: self.is_down(vm), f"{vm} to be down")

    def migrate(self, vm: str, host: str | None = None) -> str:
        """Migrate a VM, to where the engine chooses if to no host, and return where it went."""
        source = self.host_of(vm)
        self._vms.vm_service(vm).migrate(host=types.Host(id=host) if host else None)
        self.until(lambda: self.host_of(vm) != source and self.status(vm) == "up", f"{vm} to move")
        return self.host_of(vm)

    def status(self, vm: str) -> str:
        return str(self._vms.vm_service(vm).get().status.value)

    def is_down(self, vm: str) -> bool:
        return self.status(vm) == "down"

    def host_of(self, vm: str) -> str:
        return str(self._vms.vm_service(vm).get().host.id)

    def until_called(self, method: str, times: int, *vms: str) -> None:
        """Wait until the proxy's log, which is written after the answer, shows this many calls about each VM.

        Calls about other VMs do not count: those of an earlier test may be reported during this one.
        """
        self.until(
            lambda: {self.calls(method, vm) for vm in vms} == {times},
            f"{times} calls of {method} about each of {vms}",
        )

    def until(self, holds: Callable[[], bool], what: str) -> None:
        eventually(holds, PATIENCE_SECONDS, what)

    def _run(self, name: str, command: str) -> str:
        return self._processes.start(name, shlex.split(command))


def start_engine(
    processes: OurProcesses, state: Snapshot, options: str, proxy: str | None
) -> tuple[str, str]:
    """Start an engine with this state, and our proxy with the units if it is configured; their URLs."""
    folder, proxy_url = processes.folder, ""
    (folder / "state.json").write_bytes(state_file.dumps(state))
    if proxy is not None:
        (folder / f"{PROXY}.toml").write_text(proxy)
        asked = f"{PROXY} run --listen {_ANY_PORT} --plugins {PLUGINS} --config {folder}/{PROXY}.toml"
        proxy_url = address(processes.start(PROXY, shlex.split(asked)))
        options += f" --proxy {proxy_url}"
    asked = f"{ENGINE} run --listen {_ANY_PORT} --state {folder}/state.json {options}"
    return address(processes.start(ENGINE, shlex.split(asked))), proxy_url


@contextmanager
def running(
    folder: Path,
    state: Snapshot,
    *,
    engine: str = "",
    store_url: str | None = None,
    more: str = "",
    proxy: bool = True,
    time_scale: float = 60,
) -> Iterator[World]:
    """Run an engine with this state, and our proxy with the units.

    `engine` and `more` go into the configuration: further lines of that section, and what follows all.
    """
    store_url = store_url or f"sqlite:///{folder}/store.db"
    with OurProcesses(folder, {"OVIRT_PLACEMENT_CONFIG": str(folder / "placement.toml")}) as processes:
        url, _ = start_engine(processes, state, f"--time-scale {time_scale}", AT_ONCE if proxy else None)
        api = f"{url}/ovirt-engine/api"
        write_configuration(
            folder,
            api,
            engine=engine,
            # Without a service, the first answer takes as long as the engine does on a busy machine.
            inventory="max_age_seconds = 0.001\nengine_wait_ms = 10000",
            store="patience_seconds = 30.0",
            store_url=store_url,
            more=more,
        )
        with ovirtsdk4.Connection(api, "admin@internal", PASSWORD) as connection:
            yield World(processes, connection, api, store_url)
