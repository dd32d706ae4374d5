"""What can befall the engine of a scenario, and what administrators do meanwhile."""

import io
import json
import re
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import msgspec

from ovirt_enforcer.cli import main
from ovirt_placement.cli.changes import login_name
from ovirt_placement.model import AffinityRule
from ovirt_simulator.core.backend import MigrationFault
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server
from tests.configuration import write_configuration


class Happenings:
    """Each public method that a story names, and what the engine does with hosts and VMs, as `stop_vm`."""

    def __init__(self, engine: Engine, server: Server, folder: Path, enforcer: Mapping[str, Any]) -> None:
        self.engine = engine
        self.server = server
        self.log: list[str] = []
        self._folder = folder
        self._enforcer = enforcer

    def act(self, what: str, **arguments: Any) -> str | None:
        """Do what is called so; a text that comes of it is to be written down."""
        if own := getattr(self, what, None):
            return own(**arguments)  # type: ignore[no-any-return]
        verb, _, of = what.partition("_")
        getattr(getattr(self.engine, f"{of}s"), verb)(*arguments.values())
        return None

    def fail_migrations(self, **fault: Any) -> None:
        count, vm = fault.pop("count", 1), fault.pop("vm", None)
        self.engine.faults.expect(MigrationFault(**fault), count=count, identity=vm)

    def add_group(self, name: str, cluster: str, together: bool, vms: list[str]) -> None:
        rule = AffinityRule(enabled=True, positive=together, enforcing=True)
        self.engine.affinity_groups.add(cluster, name=name, vms_rule=rule, vms=vms)

    def edit_group(self, group: str, vms: list[str]) -> None:
        self.engine.affinity_groups.edit(group, vms=vms)

    def migrate_vm(self, vm: str, host: str | None) -> None:
        self.engine.vms.migrate(vm, host_id=host)

    def disturb(self, **disturbance: Any) -> None:
        self.server.disturbances.add(msgspec.convert(disturbance, Disturbance))

    def engine_returns(self) -> None:
        self.server.disturbances.clear()

    def offer_updates(self, hosts: list[str]) -> None:
        for host in hosts:
            self.engine.host_upgrades.offer(host)
            self.engine.host_upgrades.check(host)

    def ovirt_enforcer(self, line: str, into: str | None = None) -> str:
        """Run a command; what it prints goes into a file next to the configuration, if one is named.

        In the line, `{folder}` stands for the place of such files.
        """
        configuration = ("--config", str(self._configuration()))
        said, complaints = io.StringIO(), io.StringIO()
        with redirect_stdout(said), redirect_stderr(complaints):
            status = main.main([*line.format(folder=self._folder).split(), *configuration])
        if into is not None:
            (self._folder / into).write_text(said.getvalue())
            said = io.StringIO()
        return f"{said.getvalue()}{complaints.getvalue()}(exit status {status})"

    def same(self, text: str) -> str:
        """A text without what differs from run to run: ids, addresses, who runs this."""
        text = re.sub(r" \([0-9a-f]{32}(-\d+)?\)", "", text)
        text = re.sub(r"\brun [0-9a-f]{6}\b", "run RUN", text)
        text = re.sub(rf"\b{re.escape(login_name())}\b", "admin", text)
        return text.replace(self.server.url, "ENGINE").replace(str(self._folder), "FOLDER")

    def _configuration(self) -> Path:
        lines = "".join(f"{key} = {_toml(value)}\n" for key, value in self._enforcer.items())
        return write_configuration(
            self._folder, self.server.api_url, name="commands.toml", more=f"[enforcer]\n{lines}"
        )


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(key)} = {_toml(one)}' for key, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)
