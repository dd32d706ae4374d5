"""One trial of an engine: how it is asked, and what was made there that is to be removed."""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.topology import read_snapshot

PLACEMENT, ENFORCER = "ovirt-placement", "ovirt-enforcer"
_PATIENCE_SECONDS = 180.0
_PAUSE_SECONDS = 1.0


class Skipped(Exception):
    """The engine, or the command line, lacks what this step needs; the text says what."""


class Failed(Exception):
    """The engine or we did something else than was to be expected."""


@dataclass
class Trial:
    """An engine, and what was made there so far."""

    connection: EngineConnection
    options: argparse.Namespace
    folder: Path
    cluster: str = ""
    #: Names of the VMs to use, which may be started, stopped and migrated.
    vms: list[str] = field(default_factory=list)
    #: What removes what was made, the latest last, with its name.
    undo: list[tuple[str, Callable[[], object]]] = field(default_factory=list)

    @property
    def prefix(self) -> str:
        return str(self.options.prefix)

    def config(self, user: str, password_file: str | None) -> Path:
        """A configuration for a user; inventory and store are of this trial."""
        options, file = self.options, self.folder / f"{user.partition('@')[0]}.toml"
        lines = [f"[engine]\nurl = {json.dumps(options.url)}\nusername = {json.dumps(user)}"]
        lines += [f"password_file = {json.dumps(password_file)}"] if password_file else []
        lines += [f"ca_file = {json.dumps(options.ca_file)}"] if options.ca_file else []
        lines += ["insecure = true"] if options.insecure else []
        lines += [f'[inventory]\ndirectory = "{self.folder}/run"']
        lines += [f'[store]\nurl = "sqlite:///{self.folder}/store"']
        file.write_text("\n".join(lines) + "\n")
        return file

    def run(self, command: str, *words: str, config: Path | None = None) -> tuple[int, str, str]:
        """Run a command of ours; return its status, what it printed, and its complaints."""
        named = config or self.config(self.options.user, self.options.password_file)
        with subprocess.Popen(
            [Path(sys.executable).with_name(command), *words, "--config", named],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=_PATIENCE_SECONDS)
            except KeyboardInterrupt:  # who stops the trial stops no command half-way
                process.communicate(timeout=_PATIENCE_SECONDS)
                raise
            except subprocess.TimeoutExpired:
                process.terminate()
                raise
        return process.returncode, out, err

    def succeed(self, *words: str, statuses: tuple[int, ...] = (0,)) -> str:
        status, out, err = self.run(PLACEMENT, *words)
        if status not in statuses:
            raise Failed(f"ovirt-placement {' '.join(words)} ended with {status}: {(err or out).strip()}")
        return out

    @contextmanager
    def system(self) -> Iterator[Any]:
        with self.connection.session() as sdk:
            yield sdk.system_service()

    def vm(self, name: str) -> Any:
        """A VM as the engine has it."""
        for vm in read_snapshot(self.connection).vms:
            if vm.name == name:
                return vm
        raise Failed(f"VM {name} is gone")

    def host_of(self, name: str) -> str | None:
        snapshot = read_snapshot(self.connection)
        host = next(vm.host for vm in snapshot.vms if vm.name == name)
        return None if host is None else snapshot.host_by_id[host].name

    def act(self, name: str, act: Callable[[Any], object]) -> None:
        """Have the engine do something with a VM."""
        vm = self.vm(name).id
        with self.system() as system:
            act(system.vms_service().vm_service(vm))

    def until(self, condition: Callable[[], bool], what: str) -> None:
        ends = time.monotonic() + _PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > ends:
                raise Failed(f"{what} did not come within {_PATIENCE_SECONDS:.0f} s")
            time.sleep(_PAUSE_SECONDS)

    def group(self, name: str, *words: str) -> None:
        """Add an affinity group of ours."""
        self.undo.append((f"affinity group {name}", lambda: self.remove_group(name)))
        self.succeed("groups", "add", name, "--cluster", self.cluster, *words)

    def remove_group(self, name: str) -> None:
        if any(group.name == name for group in read_snapshot(self.connection).affinity_groups):
            self.succeed("groups", "remove", name)
