"""The story of the demonstration, one chapter a function."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import ovirtsdk4

from demo import cluster, tables
from demo.processes import PATIENCE_SECONDS, ProcessFailed, address
from demo.stage import PASSWORD, TIME_SCALE, USER, Stage, page_text
from ovirt_enforcer.gates.admission import GATES
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
        _say_heading(f"Start {name}. {_PURPOSE[name]}")
        with self.connection() as connection:
            vms = connection.system_service().vms_service()
            service = vms.vm_service(_id_of(vms, name))
            try:
                service.start()
            except ovirtsdk4.Error as error:
                print(tables.folded(f"The engine: {error}\n{_refused_start(name)}"))
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
        print(tables.folded(_steps(self._enforcer_log(), violated, groups)))

    def _wait_for_a_word(self) -> None:
        """Until somebody has approved of the plan, nothing is migrated."""
        with closing(ApprovalStore(self._stage.store, engine=DEFAULT_ENGINE)) as store:
            self._until(lambda: bool(store.waiting()), "a plan to wait for approval")
            print(_how_to_approve(store.waiting()[0].plan, self._stage.configuration), flush=True)
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
        print(_WHAT_NOW)

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
                _questions(self._stage.configuration, self._stage.state),
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
        return SATISFIED in self._enforcer_log()

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


# -- What the story says around commands' output: why a start fails, the enforcer's steps, and what now.


#: Why each waiting VM goes where it goes. The engine's own filter looks at direct peers only.
_PURPOSE = {
    cluster.JOINS: "It must join shop-web, which is down and itself must join shop-db: so shop-db's host.",
    cluster.STAYS_AWAY: "A ledger runs on every host but one, and ledgers must run apart.",
    cluster.HAS_NO_HOST: "It must be with audit-log and without audit-rival; both are on one host.",
}

#: How the enforcer's log ends once nothing is left to repair.
SATISFIED = "every rule is satisfied."

_WHAT_NOW = """\
Three commands to try:

  make demo KEEP=1                                           # leaves it running, with a page
  .venv/bin/ovirt-simulator generate --hosts 4 --vms 40 --groups 20 --seed 3 > cluster.json
  .venv/bin/ovirt-enforcer plan --state cluster.json         # which migrations repair its rules

The same on a real engine; both commands read, and change nothing:

  export OVIRT_URL=https://engine.example.com/ovirt-engine/api OVIRT_CAFILE=ca.pem
  export OVIRT_USERNAME=admin@internal OVIRT_PASSWORD=...
  .venv/bin/ovirt-placement snapshot > cluster.json
  .venv/bin/ovirt-enforcer plan --state cluster.json

Nothing is migrated on an engine until the configuration says mode = "enforce".

Documentation: README.md (installation), docs/commands.md (all commands), docs/rules.md (what each
rule means), docs/enforcer.md (how to begin with the enforcer), docs/simulator.md (this engine)."""


def _refused_start(vm: str) -> str:
    """What the engine's fault means when a VM cannot start."""
    return (
        f"In plain words: the engine's filters and the proxy's refuse every host for {vm}, so it stays"
        " down. The engine's API reports this as HTTP status 400, Operation Failed; the detail is empty,"
        " so the fault gives no reason. ovirt-placement why gives one for each host:"
    )


def _steps(log: str, violated: int, groups: int) -> str:
    """The enforcer's steps by its log, and the engine's verdict: `violated` of `groups` affinity groups."""
    lines = [line.partition(" ")[2] for line in log.splitlines()]
    closed = [line for line in lines if ": not now: " in line]
    return "\n".join(
        [
            "Step 1, plan: which VMs to migrate, as few as possible.",
            *_indented(line for line in lines if line.startswith("  ") or _is_plan(line)),
            f"Step 2, gates: each migration passes {len(GATES)} gates (mode, pause, windows, limits, ...).",
            *_indented(closed or ["No gate was closed."]),
            "Step 3, migrations: the engine carries them out, and the enforcer watches each to its end.",
            *_indented(line for line in lines if line.startswith("migration of ")),
            "Step 4, proof: the enforcer reads the cluster again, and the engine judges its groups itself.",
            *_indented(line for line in lines if line.endswith(SATISFIED)),
            *_indented([f"The engine's API: {violated} of {groups} affinity groups are violated."]),
        ]
    )


def _how_to_approve(plan: str, configuration: Path) -> str:
    """How to let the plan be carried out that waits."""
    return "\n".join(
        [
            f"Plan {plan} waits: both rules remain violated until you approve of it, on the page (cluster",
            f"{cluster.CLUSTER}, Plan, Approve of this plan) or in another shell:",
            "",
            f"  export OVIRT_PLACEMENT_CONFIG={configuration}",
            f"  .venv/bin/ovirt-enforcer approve {plan}",
            "",
        ]
    )


def _questions(configuration: Path, before: Path) -> str:
    """What can be asked while the story's processes run; `before` is the state file of its beginning."""
    lines = (
        f"ovirt-placement violations --state {before}",
        f"ovirt-enforcer plan --state {before}",
        f"ovirt-placement why {cluster.HAS_NO_HOST}",
        "ovirt-placement groups list",
        "ovirt-enforcer history",
    )
    return "\n".join(
        [
            "Five questions to ask in another shell, the first two about the cluster before the repair:",
            "",
            f"  export OVIRT_PLACEMENT_CONFIG={configuration}",
            *(f"  .venv/bin/{line}" for line in lines),
        ]
    )


def _is_plan(line: str) -> bool:
    return line.startswith("Cluster ") and " migration" in line


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
