"""The story of the demonstration, one chapter a function, and what the engine's API says of the cluster."""

import random
import textwrap
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import ovirtsdk4

from demo.stage import PASSWORD, PATIENCE_SECONDS, TIME_SCALE, USER, WIDTH, ProcessFailed, Stage, page_text
from ovirt_enforcer.gates.admission import GATES
from ovirt_placement.config_file import DEFAULT_ENGINE
from ovirt_placement.model import SchedulingPolicy, Snapshot, Vm
from ovirt_placement.store.orders import ApprovalStore
from ovirt_service.text import table
from ovirt_simulator.core.state import required_mb
from tests import builders
from tests.builders import APART, TOGETHER

# -- The cluster: satisfied and violated rules, VMs that wait to start.
CLUSTER = "production"
#: VMs that wait to be started, and what becomes of each.
JOINS, STAYS_AWAY, HAS_NO_HOST = "shop-cache", "ledger-new", "audit-probe"

_HOST_MEMORY_MB = 65_536


def draw(seed: int) -> Snapshot:
    """A cluster whose shape depends on `seed` alone.

    In each, one hard positive group is split, one hard negative group shares a host, and three VMs are down:
    `JOINS` must follow a peer that it knows only through a third, `STAYS_AWAY` finds one host without a
    peer, and `HAS_NO_HOST` would have to be together with and apart from VMs of the same host.
    """
    chance = random.Random(seed)  # noqa: S311 - a demonstration, not a secret
    hosts = [f"host{number}" for number in range(1, chance.randint(4, 6) + 1)]
    drawn = hosts.copy()
    chance.shuffle(drawn)
    on: dict[str, str | None] = {f"app-{n}": drawn[0] for n in range(1, chance.randint(2, 3) + 1)}
    crowded, other, _ = chance.sample(drawn, 3)
    on |= {"app-stray": drawn[1], "db-1": crowded, "db-2": crowded, "db-3": other}
    # The shop's database runs, its web server is down; ledgers run on all hosts but one.
    shop, free = chance.choice(drawn), chance.choice(drawn)
    on |= {"shop-db": shop, "shop-web": None, JOINS: None, STAYS_AWAY: None}
    on |= {f"ledger-{n}": host for n, host in enumerate((one for one in drawn if one != free), 1)}
    on |= {"audit-log": drawn[-1], "audit-relay": None, "audit-rival": drawn[-1], HAS_NO_HOST: None}
    on |= {f"batch-{n}": chance.choice(hosts) for n in range(1, chance.randint(3, 9))}
    vms = [_vm(name, host) for name, host in sorted(on.items())]
    used = {host: sum(required_mb(vm) for vm in vms if vm.host == host) for host in hosts}
    policy = SchedulingPolicy(filters=("AffinityFilter",))
    sizes = {"cluster": CLUSTER, "memory_mb": _HOST_MEMORY_MB, "cpu_percent": 10.0}
    groups = [
        ("app-together", TOGETHER, [vm for vm in on if vm.startswith("app-")]),
        ("db-apart", APART, [vm for vm in on if vm.startswith("db-")]),
        ("shop-backend", TOGETHER, ["shop-db", "shop-web"]),
        ("shop-frontend", TOGETHER, ["shop-web", JOINS]),
        ("ledger-apart", APART, [vm for vm in on if vm.startswith("ledger-")]),
        ("audit-chain", TOGETHER, ["audit-log", "audit-relay"]),
        ("audit-tap", TOGETHER, ["audit-relay", HAS_NO_HOST]),
        ("audit-rivals", APART, ["audit-rival", HAS_NO_HOST]),
    ]
    return builders.snapshot(
        builders.cluster(CLUSTER, scheduling_policy=policy),
        *(builders.host(name, free_mb=_HOST_MEMORY_MB - used[name], **sizes) for name in hosts),
        *vms,
        *(builders.group(name, rule, " ".join(members), cluster=CLUSTER) for name, rule, members in groups),
    )


def _vm(name: str, host: str | None) -> Vm:
    memory_mb = 4096 if name.startswith(("app-", "db-")) else 2048
    return builders.vm(
        name,
        host,
        cluster=CLUSTER,
        memory_mb=memory_mb,
        guaranteed_mb=memory_mb,
        usage_mem_percent=50.0 if host else None,
        usage_cpu_percent=5.0 if host else None,
        vcpus=2,
        ha=name.startswith("db-"),
    )


# -- The story, one chapter a function.
#: Exit statuses of commands that answer: nothing is violated, or something is, and what can be done about it.
_ANSWERS = (0, 1, 3, 4)
_PLUGINS = Path(__file__).resolve().parent.parent / "plugins"
#: Codes of the engine's events.
_MIGRATION_STARTED, _MIGRATION_DONE = 62, 63


class _Placement(NamedTuple):
    """What the engine's API answered at one moment, by name."""

    hosts: list[str]
    host_of_vm: dict[str, str | None]
    members_of_group: dict[str, list[str]]
    positive_groups: set[str]
    violated_groups: set[str]


class Story:
    """One demonstration and the words that go with it; one that is kept has a page, and waits for a word."""

    def __init__(self, folder: Path, seed: int, *, kept: bool) -> None:
        self._stage = Stage(folder, seed)
        self._kept = kept
        self.processes = self._stage.processes
        self._proxy_url = ""

    def report(self) -> None:
        """The whole story; raises `ProcessFailed` where it does not come out as it should."""
        heading = f"A cluster, drawn with seed {self._stage.seed}; simulator, inventory and proxy start."
        if not self._kept:
            _say_heading(heading)
        self._open()
        if self._kept:
            page = self._stage.start("ovirt-placement-web", "run")
            print(page_text(page), flush=True)  # its address is the first line of all
            _say_heading(heading)
        _say_heading("Before: two rules are violated.")
        self._show_placement()
        for vm in (JOINS, STAYS_AWAY, HAS_NO_HOST):
            self._start_vm(vm)
        _say_heading('What the enforcer would do; with mode = "observe" it changes nothing.')
        print(self._output("ovirt-enforcer", "plan"))
        self._repair()
        _say_heading("After: every rule is satisfied.")
        self._show_placement()
        print("\nMigrations that the engine logged:")
        for description in self._events(_MIGRATION_DONE):
            print(_folded(f"  {description}"))
        _say_heading("What now.")
        print(_WHAT_NOW)

    def _open(self) -> None:
        # The engine asks the proxy for its units once, when it starts: so the proxy is there first.
        self._stage.configure("observe", url="http://127.0.0.1:1")
        self._proxy_url = self._stage.start(
            "ovirt-scheduler-proxy", "run", "--plugins", str(_PLUGINS), "--listen", "127.0.0.1:0"
        )
        self._stage.start_engine(draw(self._stage.seed), proxy=self._proxy_url)
        self._stage.configure("observe")
        self._stage.start("ovirt-placement", "inventory", "run")

    def _start_vm(self, name: str) -> None:
        """Ask the engine to start a VM; it asks the proxy, and the proxy the rules."""
        _say_heading(f"Start {name}. {_PURPOSE[name]}")
        with self._system() as system:
            vms = system.vms_service()
            (vm,) = vms.list(search=f'name="{name}"')
            service = vms.vm_service(vm.id)
            try:
                service.start()
            except ovirtsdk4.Error as error:
                print(_folded(f"The engine: {error}\n{_REFUSED_START.format(vm=name)}"))
            else:
                self._until(lambda: service.get().status.value == "up", f"{name} to be up")
                print(f"{name} runs on {self._read().host_of_vm[name]}.")
        print()
        print(self._output("ovirt-placement", "why", name))

    def _repair(self) -> None:
        mode = "approve" if self._kept else "enforce"
        _say_heading(f'The enforcer, with mode = "{mode}", in four steps.')
        self._stage.configure(mode)
        self._stage.start("ovirt-enforcer", "run")
        if self._kept:
            self._wait_for_a_word()
        log = self.processes.log("ovirt-enforcer")
        self._until(lambda: not self._read().violated_groups, "all rules to be satisfied")
        self._until(
            lambda: len(self._events(_MIGRATION_STARTED)) == len(self._events(_MIGRATION_DONE)),
            "the last migration to end",
        )
        self._until(lambda: _SATISFIED in log.read_text(), "the enforcer to find every rule satisfied")
        placement = self._read()
        violated, groups = len(placement.violated_groups), len(placement.members_of_group)
        print(_folded(_steps(log.read_text(), violated, groups)))

    def _wait_for_a_word(self) -> None:
        """Until the plan is approved, nothing is migrated."""
        with closing(ApprovalStore(self._stage.store, engine=DEFAULT_ENGINE)) as store:
            self._until(lambda: bool(store.waiting()), "a plan to wait for approval")
            words = {"plan": store.waiting()[0].plan, "configuration": self._stage.configuration}
            print(_HOW_TO_APPROVE.format(**words, cluster=CLUSTER), flush=True)
            while not store.approvals():
                self.processes.check()
                time.sleep(0.5)

    def farewell(self) -> str:
        """How to talk to what still runs."""
        return _FAREWELL.format(
            configuration=self._stage.configuration,
            before=self._stage.state,
            vm=HAS_NO_HOST,
            time_scale=TIME_SCALE,
            proxy=self._proxy_url,
            folder=self._stage.folder,
            engine=self._stage.url,
            user=USER,
            password=PASSWORD,
        )

    @contextmanager
    def _system(self) -> Iterator[ovirtsdk4.services.SystemService]:
        with ovirtsdk4.Connection(f"{self._stage.url}/ovirt-engine/api", USER, PASSWORD) as connection:
            yield connection.system_service()

    def _read(self) -> _Placement:
        with self._system() as system:
            hosts = {host.id: host.name for host in system.hosts_service().list()}
            vms = {vm.id: vm for vm in system.vms_service().list()}
            here = system.clusters_service().cluster_service(CLUSTER)
            groups = here.affinity_groups_service().list()
        return _Placement(
            sorted(hosts.values()),
            {vm.name: hosts[vm.host.id] if vm.host else None for vm in vms.values()},
            {group.name: [vms[vm.id].name for vm in group.vms or ()] for group in groups},
            {group.name for group in groups if group.positive},
            {group.name for group in groups if group.broken},
        )

    def _events(self, code: int) -> list[str]:
        """What the engine's log says with this code, oldest first."""
        with self._system() as system:
            events = system.events_service().list()
        return [event.description for event in reversed(events) if event.code == code]

    def _show_placement(self) -> None:
        """Each host with the VMs that run on it, and each affinity group with where its members run."""
        placement = self._read()
        running = defaultdict(list)
        for vm, host in sorted(placement.host_of_vm.items()):
            running[host or "(down)"].append(vm)
        rows = [(one, textwrap.fill(" ".join(running[one]), 78)) for one in (*placement.hosts, "(down)")]
        print(table(rows, ("host", "VMs")), end="\n\n")
        groups = []
        for name, members in sorted(placement.members_of_group.items()):
            where = [f"{vm}@{host}" for vm in members if (host := placement.host_of_vm[vm])]
            rule = "together" if name in placement.positive_groups else "apart"
            state = "VIOLATED" if name in placement.violated_groups else "satisfied"
            groups.append((name, rule, state, textwrap.fill(" ".join(where), 60)))
        print(table(groups, ("affinity group", "must run", "state", "running members")))

    def _output(self, *arguments: str) -> str:
        completed = self.processes.run(arguments)
        if completed.returncode not in _ANSWERS:
            raise ProcessFailed(f"{' '.join(arguments)}: {completed.stderr.strip()}")
        return _folded(completed.stdout.rstrip())

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            self.processes.check()
            if time.monotonic() > deadline:
                raise ProcessFailed(f"waited {PATIENCE_SECONDS} s without success for {what}")
            time.sleep(0.1)


def _say_heading(heading: str) -> None:
    print(f"\n{_folded(f'=== {heading}')}\n", flush=True)


def _folded(text: str) -> str:
    """The text with its lines folded at `WIDTH`; what is carried over is indented."""
    folded = []
    for line in text.splitlines():
        indent = line[: len(line) - len(line.lstrip())] + "  "
        fold = textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
        folded.append("\n".join(fold) or line)
    return "\n".join(folded)


# -- What the story says around commands' output: why a start fails, the enforcer's steps, and what now.
#: Why each waiting VM goes where it goes. The engine's own filter looks at direct peers only.
_PURPOSE = {
    JOINS: "It must join shop-web, which is down and itself must join shop-db: so shop-db's host.",
    STAYS_AWAY: "A ledger runs on every host but one, and ledgers must run apart.",
    HAS_NO_HOST: "It must be with audit-log and without audit-rival; both are on one host.",
}

#: How the enforcer's log ends once nothing is left to repair.
_SATISFIED = "every rule is satisfied."

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

#: What the engine's fault means when a VM cannot start.
_REFUSED_START = (
    "In plain words: the engine's filters and the proxy's refuse every host for {vm}, so it stays"
    " down. The engine's API reports this as HTTP status 400, Operation Failed; the detail is empty,"
    " so the fault gives no reason. ovirt-placement why gives one for each host:"
)

_HOW_TO_APPROVE = """\
Plan {plan} waits: both rules remain violated until you approve of it, on the page (cluster
{cluster}, Plan, Approve of this plan) or in another shell:

  export OVIRT_PLACEMENT_CONFIG={configuration}
  .venv/bin/ovirt-enforcer approve {plan}
"""

#: What can be asked while the story's processes run; `before` is the state file of its beginning.
_FAREWELL = """\
Five questions to ask in another shell, the first two about the cluster before the repair:

  export OVIRT_PLACEMENT_CONFIG={configuration}
  .venv/bin/ovirt-placement violations --state {before}
  .venv/bin/ovirt-enforcer plan --state {before}
  .venv/bin/ovirt-placement why {vm}
  .venv/bin/ovirt-placement groups list
  .venv/bin/ovirt-enforcer history

The enforcer stays in mode = "approve": it repairs what you violate, if you approve.
The engine's clock runs {time_scale} times as fast as yours.

  proxy:  {proxy}
  logs:   {folder}
  API:    {engine}/ovirt-engine/api (user {user}, password {password})"""


def _steps(log: str, violated: int, groups: int) -> str:
    """The enforcer's steps by its log, and the engine's verdict: `violated` of `groups` affinity groups."""
    lines = [line.partition(" ")[2] for line in log.splitlines()]
    steps = {
        "Step 1, plan: which VMs to migrate, as few as possible.": [
            line
            for line in lines
            if line.startswith("  ") or (line.startswith("Cluster ") and " migration" in line)
        ],
        f"Step 2, gates: each migration passes {len(GATES)} gates (mode, pause, windows, limits, ...).": [
            line for line in lines if ": not now: " in line
        ]
        or ["No gate was closed."],
        "Step 3, migrations: the engine carries them out, and the enforcer watches each to its end.": [
            line for line in lines if line.startswith("migration of ")
        ],
        "Step 4, proof: the enforcer reads the cluster again, and the engine judges its groups itself.": [
            *(line for line in lines if line.endswith(_SATISFIED)),
            f"The engine's API: {violated} of {groups} affinity groups are violated.",
        ],
    }
    return "\n".join("\n  ".join((step, *said)) for step, said in steps.items())
