"""The processes of a storm, as in use: engine, inventory, proxy, and the policy that `setup` makes."""

from __future__ import annotations

import json
import shlex
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from demo.processes import ProcessFailed, address
from lxml import etree

from ovirt_placement.model import Snapshot, state_file
from tests.configuration import write_configuration
from tests.integration.storms.clients import log_in
from tests.integration.storms.cluster import CLUSTER_NAME
from tests.integration.world import OurProcesses
from tests.paths import PLUGINS
from tests.proxy.running import AT_ONCE

ENGINE, INVENTORY, PROXY = "ovirt-simulator", "inventory", "ovirt-scheduler-proxy"
#: How often a port is tried again that its last owner has just left.
_TRIES = 20
_PATIENCE_SECONDS, _PAUSE_SECONDS = 60.0, 0.1


class _StormProcesses(OurProcesses):
    """Processes that can also be frozen, as by a host that stalls."""

    def freeze(self, name: str) -> None:
        self._running[name].send_signal(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        self._running[name].send_signal(signal.SIGCONT)


class Stage:
    """A running engine with our parts around it."""

    def __init__(
        self, processes: _StormProcesses, url: str, commands: Mapping[str, str], proxy_url: str
    ) -> None:
        self._processes = processes
        self._commands = commands
        self.url = url
        self.proxy_url = proxy_url
        self.token = log_in(url)
        self.folder = processes.folder

    def state(self) -> Snapshot:
        """The engine's own view of everything, with what it has scheduled and not started."""
        return state_file.loads(_read(f"{self.url}/simulator/state"))

    def hosts(self) -> dict[str, str | None]:
        """Where each VM is or will be."""
        state = self.state()
        pending = {one.vm: one.host for one in state.pending}
        return {vm.id: pending.get(vm.id) or vm.host for vm in state.vms}

    def down(self, vms: Sequence[str]) -> list[str]:
        """Which of these VMs neither run nor are about to."""
        hosts = self.hosts()
        return [vm for vm in vms if hosts[vm] is None]

    def until_up(self, vms: Sequence[str]) -> Snapshot:
        """Wait until all of these VMs are up, and give the state in which they are."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while {(state := self.state()).vm_by_id[vm].status for vm in vms} != {"up"}:
            assert time.monotonic() < until, "waited without success for VMs to be up"
            time.sleep(_PAUSE_SECONDS)
        return state

    def events(self, code: int) -> list[str]:
        """What the events of this code say."""
        wanted = {"Authorization": f"Bearer {self.token}"}
        found = etree.fromstring(_read(f"{self.url}/ovirt-engine/api/events", wanted))
        return [each.findtext("description") or "" for each in found if each.findtext("code") == str(code)]

    def decisions(self) -> list[dict[str, object]]:
        """What the proxy recorded of each call of filters and weights, once it is stopped."""
        file = self.folder / "decisions"
        lines = file.read_text().splitlines() if file.exists() else []
        return [record for line in lines if (record := json.loads(line))["vm"]]

    def stop(self, name: str) -> None:
        self._processes.stop(name)

    def kill(self, name: str) -> None:
        """End a process as a failing power supply does."""
        self._processes.kill(name)

    def freeze(self, name: str) -> None:
        """Let a process answer nobody, and keep all that it has."""
        self._processes.freeze(name)

    def thaw(self, name: str) -> None:
        self._processes.thaw(name)

    def start(self, name: str) -> None:
        """Start a process that was killed, at the address that it had."""
        for _ in range(_TRIES):
            with suppress(ProcessFailed):  # its port is not free yet
                self._processes.start(name, shlex.split(self._commands[name]))
                return
            time.sleep(_PAUSE_SECONDS)
        raise ProcessFailed(f"{name} does not come back: {self._processes.log(name).read_text()[-500:]}")

    def restart_engine(self, state: Snapshot) -> None:
        """Let an engine that was killed come back as its database has it."""
        (self.folder / "state.json").write_bytes(state_file.dumps(state))
        self.start(ENGINE)
        self.token = log_in(self.url)


def _read(url: str, headers: Mapping[str, str] | None = None) -> bytes:
    with urlopen(Request(url, headers=dict(headers or {})), timeout=120) as reply:
        return bytes(reply.read())


@contextmanager
def with_ours(
    folder: Path,
    state: Snapshot,
    *,
    threads: int,
    time_scale: float = 1,
    max_age: float | None = None,
) -> Iterator[Stage]:
    """Run an engine with our proxy, the policy that `setup` makes, and the inventory."""
    with _StormProcesses(folder, {"OVIRT_PLACEMENT_CONFIG": str(folder / "placement.toml")}) as processes:
        (folder / "proxy.toml").write_text(f'[decisions]\nfile = "{folder}/decisions"\n{AT_ONCE}')
        proxy = address(processes.start(PROXY, shlex.split(_proxy(folder, "127.0.0.1:0"))))
        url = _engine(processes, state, threads, time_scale, proxy)
        freshness = "" if max_age is None else f"max_age_seconds = {max_age}"
        config = write_configuration(folder, f"{url}/ovirt-engine/api", inventory=freshness)
        _succeed(processes, f"ovirt-placement setup --cluster {CLUSTER_NAME} --config {config}")
        inventory = f"ovirt-placement inventory run --config {config}"
        processes.start(INVENTORY, shlex.split(inventory))
        commands = {
            PROXY: _proxy(folder, urlsplit(proxy).netloc),
            ENGINE: _simulator(folder, urlsplit(url).netloc, threads, time_scale, proxy),
            INVENTORY: inventory,
        }
        yield Stage(processes, url, commands, proxy)


def _engine(processes: _StormProcesses, state: Snapshot, threads: int, time_scale: float, proxy: str) -> str:
    (processes.folder / "state.json").write_bytes(state_file.dumps(state))
    command = _simulator(processes.folder, "127.0.0.1:0", threads, time_scale, proxy)
    return address(processes.start(ENGINE, shlex.split(command)))


def _simulator(folder: Path, listen: str, threads: int, time_scale: float, proxy: str) -> str:
    command = f"{ENGINE} run --state {folder}/state.json --listen {listen} --http-threads {threads}"
    return f"{command} --time-scale {time_scale} --proxy {proxy}"


def _proxy(folder: Path, listen: str) -> str:
    return f"{PROXY} run --listen {listen} --config {folder}/proxy.toml --plugins {PLUGINS}"


def _succeed(processes: _StormProcesses, command: str) -> None:
    done = processes.run(shlex.split(command))
    assert done.returncode == 0, done.stdout + done.stderr
