"""The processes of a storm, as in use: engine, inventory, proxy, and the policy that `setup` makes."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from lxml import etree

from ovirt_placement.model import Snapshot
from ovirt_placement.model.files import state_file
from tests.configuration import write_configuration
from tests.integration.storms.clients import log_in
from tests.integration.storms.cluster import CLUSTER_NAME
from tests.integration.world import ENGINE, PROXY, OurProcesses, start_engine
from tests.proxy.running import AT_ONCE

INVENTORY = "inventory"
#: Events of an engine that cannot reach the proxy, and that heard of a unit that failed.
_COMPLAINTS = ("9920", "9921")


@dataclass(frozen=True)
class Figures:
    """What a storm met."""

    #: Where the VMs ended.
    hosts: Mapping[str, str | None]
    #: What each call of filters or weights took, as the proxy recorded it.
    seconds: list[float]
    #: How many units failed in these calls, by cause. A refusal is a filter's own will.
    causes: Mapping[str, int]
    #: What the engine says of a proxy that it cannot reach, and of units that failed.
    complaints: list[str]


class Stage:
    """A running engine with our parts around it."""

    def __init__(self, processes: OurProcesses, url: str, proxy_url: str) -> None:
        self.processes = processes
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

    def end(self) -> Figures:
        """Take the figures at the end of a storm; this stops the proxy, whose record is whole then."""
        hosts, wanted = self.hosts(), {"Authorization": f"Bearer {self.token}"}
        events = etree.fromstring(_read(f"{self.url}/ovirt-engine/api/events", wanted))
        found = [event for event in events if event.findtext("code") in _COMPLAINTS]
        self.processes.stop(PROXY)
        file = self.folder / "decisions"
        records = map(json.loads, file.read_text().splitlines() if file.exists() else ())
        calls = [record for record in records if record["vm"]]
        causes = Counter(cause for call in calls for cause in call["failures"].values() if cause != "refused")
        complaints = [event.findtext("description") or "" for event in found]
        return Figures(hosts, [call["seconds"] for call in calls], causes, complaints)

    def restart_engine(self, state: Snapshot) -> None:
        """Let an engine that was killed come back as its database has it."""
        (self.folder / "state.json").write_bytes(state_file.dumps(state))
        self.processes.restart(ENGINE)
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
        decisions = f'[decisions]\nfile = "{folder}/decisions"\n{AT_ONCE}'
        options = f"--http-threads {threads} --time-scale {time_scale}"
        url, proxy_url = start_engine(processes, state, options, decisions)
        freshness = "" if max_age is None else f"max_age_seconds = {max_age}"
        config = write_configuration(folder, f"{url}/ovirt-engine/api", inventory=freshness)
        done = processes.run(shlex.split(f"ovirt-placement setup --cluster {CLUSTER_NAME} --config {config}"))
        assert done.returncode == 0, done.stdout + done.stderr
        processes.start(INVENTORY, shlex.split(f"ovirt-placement inventory run --config {config}"))
        yield Stage(processes, url, proxy_url)
