"""The story of the demonstration, one chapter a function."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import ovirtsdk4

from demo import cluster, tables, words
from demo.processes import PATIENCE_SECONDS, ProcessFailed, address
from demo.stage import PASSWORD, TIME_SCALE, USER, Stage, page_text
from ovirt_placement.config_file import DEFAULT_ENGINE
from ovirt_placement.store.orders import ApprovalStore

#: Exit statuses of commands that answer: nothing is violated, or something is, and what can be done about it.
_ANSWERS = (0, 1, 3, 4)
PLUGINS = Path(__file__).resolve().parent.parent / "plugins"
#: Codes of the engine's events.
MIGRATION_STARTED, MIGRATION_DONE = 62, 63


class Story:
    """One demonstration and the words that go with it; one that is kept has a page, and waits for a word."""

    def __init__(self, folder: Path, seed: int, *, kept: bool) -> None:
        self._stage = Stage(folder, seed)
        self._kept = kept
        self.processes = self._stage.processes
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
        heading = f"A cluster, drawn with seed {self._stage.seed}; simulator, inventory and proxy start."
        if not self._kept:
            _say_heading(heading)
            self._open()
            return
        self._open()
        print(page_text(self._stage.start_page()), flush=True)  # its address is the first line of all
        _say_heading(heading)

    def _open(self) -> None:
        # The engine asks the proxy for its units once, when it starts: so the proxy is there first.
        self._stage.configure("observe", url="http://127.0.0.1:1")
        self.proxy_url = address(
            self._start("ovirt-scheduler-proxy", "run", "--plugins", str(PLUGINS), "--listen", "127.0.0.1:0")
        )
        self._stage.start_engine(cluster.draw(self._stage.seed), proxy=self.proxy_url)
        self._stage.configure("observe")
        self._start("ovirt-placement", "inventory", "run")

    def before(self) -> None:
        _say_heading("Before: two rules are violated.")
        self._show_placement()

    def start_vm(self, name: str) -> None:
        """Ask the engine to start a VM; it asks the proxy, and the proxy the rules."""
        _say_heading(f"Start {name}. {words.PURPOSE[name]}")
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
        _say_heading('What the enforcer would do; with mode = "observe" it changes nothing.')
        print(self._output("ovirt-enforcer", "plan"))

    def repair(self) -> None:
        mode = "approve" if self._kept else "enforce"
        _say_heading(f'The enforcer, with mode = "{mode}", in four steps.')
        self._stage.configure(mode)
        self._start("ovirt-enforcer", "run")
        if self._kept:
            self._wait_for_a_word()
        self._until(lambda: not self.read().violated_groups, "all rules to be satisfied")
        self._until(self._migrations_ended, "the last migration to end")
        self._until(self._is_proved, "the enforcer to find every rule satisfied")
        placement = self.read()
        violated, groups = len(placement.violated_groups), len(placement.members_of_group)
        print(tables.folded(words.steps(self._enforcer_log(), violated, groups)))

    def _wait_for_a_word(self) -> None:
        """Until somebody has approved of the plan, nothing is migrated."""
        with closing(ApprovalStore(self._stage.store, engine=DEFAULT_ENGINE)) as store:
            self._until(lambda: bool(store.waiting()), "a plan to wait for approval")
            print(words.approve(store.waiting()[0].plan, self._stage.configuration), flush=True)
            while not store.approvals():
                self.processes.check()
                time.sleep(0.5)

    def after(self) -> None:
        _say_heading("After: every rule is satisfied.")
        self._show_placement()
        print("\nMigrations that the engine logged:")
        for description in self._events(MIGRATION_DONE):
            print(tables.folded(f"  {description}"))

    def what_now(self) -> None:
        _say_heading("What now.")
        print(words.WHAT_NOW)

    def read(self) -> tables.Placement:
        with self.connection() as connection:
            return tables.read(connection, cluster.CLUSTER)

    @contextmanager
    def connection(self) -> Iterator[ovirtsdk4.Connection]:
        connection = ovirtsdk4.Connection(f"{self._stage.url}/ovirt-engine/api", USER, PASSWORD)
        try:
            yield connection
        finally:
            connection.close()

    def farewell(self) -> str:
        """How to talk to what still runs."""
        return "\n".join(
            [
                words.questions(self._stage.configuration, self._stage.state),
                "",
                'The enforcer stays in mode = "approve": it repairs what you violate, if you approve.',
                f"The engine's clock runs {TIME_SCALE} times as fast as yours.",
                "",
                f"  proxy:  {self.proxy_url}",
                f"  logs:   {self._stage.folder}",
                f"  API:    {self._stage.url}/ovirt-engine/api (user {USER}, password {PASSWORD})",
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

    def _show_placement(self) -> None:
        placement = self.read()
        print(tables.hosts_table(placement), tables.groups_table(placement), sep="\n\n")

    def _start(self, *arguments: str) -> str:
        return self._stage.start(*arguments)

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


def _say_heading(heading: str) -> None:
    print(f"\n{tables.folded(f'=== {heading}')}\n", flush=True)
