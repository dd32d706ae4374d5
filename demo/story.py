"""The story of the demonstration, one chapter a function."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import ovirtsdk4

from demo import cluster, tables, words
from demo.processes import PATIENCE_SECONDS, Processes, ProcessFailed, address
from ovirt_placement.model import state_file

PASSWORD = "demo"  # noqa: S105 - a throw-away engine on loopback
USER = "admin@internal"
#: Exit statuses of commands that answer: nothing is violated, or something is, and what can be done about it.
_ANSWERS = (0, 1, 3, 4)
PLUGINS = Path(__file__).resolve().parent.parent / "plugins"
#: Simulated seconds a second: a migration takes a moment instead of half a minute.
TIME_SCALE = 20
#: Codes of the engine's events.
MIGRATION_STARTED, MIGRATION_DONE = 62, 63

_CONFIGURATION = """\
[engine]
url = "{url}/ovirt-engine/api"
username = "{user}"
password_file = "{folder}/password"

[inventory]
directory = "{folder}/inventory"
interval_seconds = 0.5

[store]
url = "sqlite:///{folder}/store.db"

[enforcer]
mode = "{mode}"
interval_seconds = 1
"""


class Story:
    """The processes of one demonstration and the words that go with them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.seed = seed
        self.configuration = folder / "ovirt-placement.toml"
        self.processes = Processes(folder, {"OVIRT_PLACEMENT_CONFIG": str(self.configuration)})
        self.url = ""
        self.proxy_url = ""

    def report(self) -> None:
        """The whole story; raises `ProcessFailed` where it does not come out as it should."""
        self.open()
        self.before()
        for vm in (cluster.JOINS, cluster.STAYS_AWAY, cluster.HAS_NO_HOST):
            self.start_vm(vm)
        self.plan()
        self.repair()
        self.after()
        self.what_now()

    def open(self) -> None:
        _say(f"A cluster, drawn with seed {self.seed}; simulator, inventory and proxy start.")
        state = self.folder / "state.json"
        state.write_bytes(state_file.dumps(cluster.draw(self.seed)))
        # The engine asks the proxy for its units once, when it starts: so the proxy is there first.
        self._configure("observe", url="http://127.0.0.1:1")
        self.proxy_url = address(
            self._start("ovirt-scheduler-proxy", "run", "--plugins", str(PLUGINS), "--listen", "127.0.0.1:0")
        )
        ready = self._start(
            "ovirt-simulator", "run", "--state", str(state), "--listen", "127.0.0.1:0",
            "--proxy", self.proxy_url, "--time-scale", str(TIME_SCALE), "--password", PASSWORD,
            "--seed", str(self.seed),
        )  # fmt: skip
        self.url = address(ready)
        self._configure("observe", url=self.url)
        self._start("ovirt-placement", "inventory", "run")

    def before(self) -> None:
        _say("Before: two rules are violated.")
        self._show()

    def start_vm(self, name: str) -> None:
        """Ask the engine to start a VM; it asks the proxy, and the proxy the rules."""
        _say(f"Start {name}. {words.PURPOSE[name]}")
        with self.connection() as connection:
            vms = connection.system_service().vms_service()
            service = vms.vm_service(_id_of(vms, name))
            try:
                service.start()
            except ovirtsdk4.Error as error:
                print(tables.folded(f"The engine: {error}\n{words.refused_start(name)}"))
            else:
                self._until(lambda: service.get().status.value == "up", f"{name} to be up")
                print(f"{name} runs on {self.read().host_of_vm[name]}.")
        print()
        print(self._output("ovirt-placement", "why", name))

    def plan(self) -> None:
        _say('What the enforcer would do; with mode = "observe" it changes nothing.')
        print(self._output("ovirt-enforcer", "plan"))

    def repair(self) -> None:
        _say('The enforcer, with mode = "enforce", in four steps.')
        self._configure("enforce", url=self.url)
        self._start("ovirt-enforcer", "run")
        self._until(lambda: not self.read().violated_groups, "all rules to be satisfied")
        self._until(self._migrations_ended, "the last migration to end")
        self._until(self._is_proved, "the enforcer to find every rule satisfied")
        placement = self.read()
        violated, groups = len(placement.violated_groups), len(placement.members_of_group)
        print(tables.folded(words.steps(self._enforcer_log(), violated, groups)))

    def after(self) -> None:
        _say("After: every rule is satisfied.")
        self._show()
        print("\nMigrations that the engine logged:")
        for description in self._events(MIGRATION_DONE):
            print(tables.folded(f"  {description}"))

    def what_now(self) -> None:
        _say("What now.")
        print(words.WHAT_NOW)

    def read(self) -> tables.Placement:
        with self.connection() as connection:
            return tables.read(connection, cluster.CLUSTER)

    @contextmanager
    def connection(self) -> Iterator[ovirtsdk4.Connection]:
        connection = ovirtsdk4.Connection(f"{self.url}/ovirt-engine/api", USER, PASSWORD)
        try:
            yield connection
        finally:
            connection.close()

    def farewell(self) -> str:
        """How to talk to what still runs."""
        return "\n".join(
            [
                words.questions(self.configuration, self.folder / "state.json"),
                "",
                'The enforcer stays in mode = "enforce": what you violate in the engine, it repairs.',
                f"The engine's clock runs {TIME_SCALE} times as fast as yours.",
                "",
                f"  proxy:  {self.proxy_url}",
                f"  logs:   {self.folder}",
                f"  API:    {self.url}/ovirt-engine/api (user {USER}, password {PASSWORD})",
            ]
        )

    def _is_proved(self) -> bool:
        return words.SATISFIED in self._enforcer_log()

    def _enforcer_log(self) -> str:
        return self.processes.log("ovirt-enforcer").read_text()

    def _migrations_ended(self) -> bool:
        return len(self._events(MIGRATION_STARTED)) == len(self._events(MIGRATION_DONE))

    def _events(self, code: int) -> list[str]:
        """What the engine's log says with this code, oldest first."""
        with self.connection() as connection:
            events = connection.system_service().events_service().list()
        return [event.description for event in reversed(events) if event.code == code]

    def _show(self) -> None:
        placement = self.read()
        print(tables.hosts_table(placement), tables.groups_table(placement), sep="\n\n")

    def _configure(self, mode: str, url: str) -> None:
        password = self.folder / "password"
        password.touch(mode=0o600)
        password.write_text(PASSWORD)
        self.configuration.write_text(
            _CONFIGURATION.format(url=url, user=USER, folder=self.folder, mode=mode)
        )

    def _start(self, *arguments: str) -> str:
        return self.processes.start(arguments[0], arguments)

    def _output(self, *arguments: str) -> str:
        completed = self.processes.run(arguments)
        if completed.returncode not in _ANSWERS:
            raise ProcessFailed(f"{' '.join(arguments)}: {completed.stderr.strip()}")
        return tables.folded(completed.stdout.rstrip())

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            self.processes.check()
            if time.monotonic() > deadline:
                raise ProcessFailed(f"waited {PATIENCE_SECONDS} s without success for {what}")
            time.sleep(0.1)


def _id_of(vms: ovirtsdk4.services.VmsService, name: str) -> str:
    (vm,) = vms.list(search=f'name="{name}"')
    return str(vm.id)


def _say(heading: str) -> None:
    print(f"\n{tables.folded(f'=== {heading}')}\n", flush=True)
