"""The processes of a storm, as in use: engine, inventory, proxy, and the policy that `setup` makes."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from demo.processes import ProcessFailed, address
from lxml import etree

from ovirt_placement.model import Snapshot
from ovirt_placement.model.files import state_file
from tests.configuration import write_configuration
from tests.integration.storms.clients import log_in
from tests.integration.storms.cluster import CLUSTER_NAME
from tests.integration.world import OurProcesses
from tests.paths import PLUGINS
from tests.proxy.running import AT_ONCE

ENGINE, INVENTORY, PROXY = "ovirt-simulator", "inventory", "ovirt-scheduler-proxy"
#: How often a port is tried again that its last owner has just left.
_TRIES = 20
_PAUSE_SECONDS = 0.1


class Stage:
    """A running engine with our parts around it."""

    def __init__(
        self, processes: OurProcesses, url: str, commands: Mapping[str, str], proxy_url: str
    ) -> None:
        self.processes = processes
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

    def start(self, name: str) -> None:
        """Start a process that was killed, at the address that it had."""
        for _ in range(_TRIES):
            with suppress(ProcessFailed):  # its port is not free yet
                self.processes.start(name, shlex.split(self._commands[name]))
                return
            time.sleep(_PAUSE_SECONDS)
        raise ProcessFailed(f"{name} does not come back: {self.processes.log(name).read_text()[-500:]}")

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
    with OurProcesses(folder, {"OVIRT_PLACEMENT_CONFIG": str(folder / "placement.toml")}) as processes:
        (folder / "proxy.toml").write_text(f'[decisions]\nfile = "{folder}/decisions"\n{AT_ONCE}')
        (folder / "state.json").write_bytes(state_file.dumps(state))
        scheduler = f"{PROXY} run --config {folder}/proxy.toml --plugins {PLUGINS} --listen"
        proxy = address(processes.start(PROXY, shlex.split(f"{scheduler} 127.0.0.1:0")))
        simulator = f"{ENGINE} run --state {folder}/state.json --http-threads {threads}"
        simulator += f" --time-scale {time_scale} --proxy {proxy} --listen"
        url = address(processes.start(ENGINE, shlex.split(f"{simulator} 127.0.0.1:0")))
        freshness = "" if max_age is None else f"max_age_seconds = {max_age}"
        config = write_configuration(folder, f"{url}/ovirt-engine/api", inventory=freshness)
        done = processes.run(shlex.split(f"ovirt-placement setup --cluster {CLUSTER_NAME} --config {config}"))
        assert done.returncode == 0, done.stdout + done.stderr
        inventory = f"ovirt-placement inventory run --config {config}"
        processes.start(INVENTORY, shlex.split(inventory))
        commands = {
            PROXY: f"{scheduler} {urlsplit(proxy).netloc}",
            ENGINE: f"{simulator} {urlsplit(url).netloc}",
            INVENTORY: inventory,
        }
        yield Stage(processes, url, commands, proxy)
