"""Storms of starts over HTTP against an engine with few request threads: clients, cluster, processes."""

import json
import random
import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from http.client import HTTPException
from itertools import count, cycle, islice, pairwise
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from lxml import etree

from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.users import UserTokens
from ovirt_placement.model import Host, Snapshot, state_file
from tests import builders as build
from tests.configuration import PASSWORD, write_configuration
from tests.integration.bursts import identities
from tests.integration.world import ENGINE, PROXY, OurProcesses, start_engine
from tests.proxy.running import AT_ONCE


@dataclass(frozen=True)
class Answer:
    """What a client was answered, when it was; None if the engine was lost or took too long."""

    vm: str
    status: int | None
    body: str = ""

    @property
    def refused(self) -> bool:
        return self.status is not None and self.status != 200


@dataclass(frozen=True)
class Burst:
    """All answers."""

    answers: tuple[Answer, ...]

    @property
    def refused(self) -> tuple[Answer, ...]:
        return tuple(answer for answer in self.answers if answer.refused)

    @property
    def lost(self) -> tuple[str, ...]:
        """VMs of whose start nobody knows what came of it."""
        return tuple(answer.vm for answer in self.answers if answer.status is None)


#: Is called after each answer with how many there are by now.
Answered = Callable[[int], object]


def start_all(
    url: str, token: str, vms: Sequence[str], *, patience: float, answered: Answered = lambda count: None
) -> Burst:
    """Ask for all these starts at the same time, and wait at most this many seconds for their answers."""
    numbers = count(1)

    def start(vm: str) -> Answer:
        answer = _start(url, token, vm, patience)
        if answer.status is not None:
            answered(next(numbers))
        return answer

    with ThreadPoolExecutor(len(vms)) as pool:
        return Burst(tuple(pool.map(start, vms)))


def _start(url: str, token: str, vm: str, patience: float) -> Answer:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/xml"}
    asked = Request(f"{url}/ovirt-engine/api/vms/{vm}/start", b"<action/>", headers)
    try:
        with urlopen(asked, timeout=patience) as reply:
            return Answer(vm, reply.status, reply.read().decode())
    except HTTPError as refused:
        with refused:
            return Answer(vm, refused.code, refused.read().decode())
    except (OSError, HTTPException):
        return Answer(vm, None)


HOSTS = 10
CLUSTER_NAME = "storm"
_MEMORY_MB = 262_144


class Kind(Enum):
    """What binds VMs that start: the rule between them, None of a chain and of those that nothing binds."""

    CHAIN = None
    SOFT_APART = build.SOFT_APART
    HARD_TOGETHER = build.TOGETHER
    SOFT_TOGETHER = build.SOFT_TOGETHER
    HARD_APART = build.APART


#: Of all VMs that start, one in this many is in one long chain.
_LONG_CHAIN_SHARE = 6
#: How many VMs of each kind start together.
_SIZES = {Kind.CHAIN: 2, Kind.SOFT_APART: 4, Kind.HARD_TOGETHER: 3, Kind.SOFT_TOGETHER: 3, Kind.HARD_APART: 5}


@dataclass(frozen=True)
class Storm:
    """A cluster, the VMs that start in the order in which they are asked for, and what must hold of them."""

    state: Snapshot
    starts: tuple[str, ...]
    #: Those of each hard chain that start, and must end on one host; the links between them are down.
    chains: tuple[tuple[str, ...], ...]
    together: tuple[tuple[str, ...], ...]
    apart: tuple[tuple[str, ...], ...]

    def torn_chains(self, hosts: Mapping[str, str | None]) -> list[int]:
        """On how many hosts each chain is that is on several."""
        return [number for chain in self.chains if (number := len(_used(chain, hosts))) > 1]

    def violated(self, hosts: Mapping[str, str | None]) -> int:
        """How many hard groups are violated, of which the engine itself knows all members."""
        torn = sum(len(_used(group, hosts)) > 1 for group in self.together)
        placed = [[hosts[vm] for vm in group if hosts[vm]] for group in self.apart]
        return torn + sum(len(set(found)) < len(found) for found in placed)


def _used(vms: tuple[str, ...], hosts: Mapping[str, str | None]) -> set[str]:
    return {host for vm in vms if (host := hosts[vm])}


def draw(starts: int, seed: int = 1) -> Storm:
    """Draw a cluster in which this many VMs start, all of them lawfully wherever the others are."""
    dice = random.Random(f"{starts} {seed}")

    new = identities(dice)
    vms = [new() for _ in range(starts)]
    bound = list(_bound(vms))
    chains = tuple(chain for kind, chain in bound if kind is Kind.CHAIN)
    linked = [_linked(chain, new) for chain in chains]
    ruled = [(kind.value, members) for kind, members in bound if kind.value]
    ruled += [(build.TOGETHER, pair) for chain in linked for pair in pairwise(chain)]
    groups = [build.group(new(), rule, " ".join(members)) for rule, members in ruled]
    down = {vm for chain in linked for vm in chain}.difference(vms)
    state = build.snapshot(
        build.cluster(name=CLUSTER_NAME), *(_host(new(), number) for number in range(HOSTS)),
        *map(build.vm, [*vms, *sorted(down)]), *groups,
    )  # fmt: skip
    return Storm(
        state,
        tuple(dice.sample(vms, len(vms))),
        chains,
        tuple(members for kind, members in bound if kind is Kind.HARD_TOGETHER),
        tuple(members for kind, members in bound if kind is Kind.HARD_APART),
    )


def _bound(vms: list[str]) -> Iterator[tuple[Kind, tuple[str, ...]]]:
    """Divide the VMs into one long chain, and the kinds in turn; what is left over is bound by nothing."""
    left = iter(vms)
    yield Kind.CHAIN, tuple(islice(left, max(2, len(vms) // _LONG_CHAIN_SHARE)))
    for kind in cycle(Kind):
        members = tuple(islice(left, _SIZES[kind]))
        if len(members) < _SIZES[kind]:
            return
        yield kind, members


def _linked(chain: tuple[str, ...], new: Callable[[], str]) -> list[str]:
    """Put two VMs, which stay down, between any two of a chain."""
    return [vm for member in chain for vm in (member, new(), new())][:-2]


def _host(host: str, number: int) -> Host:
    """The first one has twice the memory, and is busier; between the others each start tips the scales."""
    memory = _MEMORY_MB * (2 if number == 0 else 1)
    busy = 40 if number == 0 else 20
    return build.host(host, memory_mb=memory, free_mb=memory - 4096, cpu_percent=busy, cores=64)


INVENTORY = "inventory"
#: Events of an engine that cannot reach the proxy, and that heard of a unit that failed.
_COMPLAINTS = ("9920", "10500", "10501")


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


def log_in(url: str) -> str:
    """Get a token that holds for all clients."""
    return UserTokens(EngineSettings(url=f"{url}/ovirt-engine/api")).log_in("admin@internal", PASSWORD)


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
    folder: Path, state: Snapshot, *, threads: int, time_scale: float = 1, max_age: float | None = None
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
