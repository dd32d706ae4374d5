"""One case: a drawn cluster, an engine behind a wire that distorts, an enforcer; until all is quiet again."""

import errno
import functools
import os
import random
import re
import threading
import tomllib
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
from werkzeug import Request, Response

import ovirt_placement.cli.main
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.model import Snapshot
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import Answer, Server, serve
from tests.builders import APART, TOGETHER, cluster, group, host, label, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.launching import NEVER, EnforcerProcess
from tests.enforcer.safety.oracles import faults_of, records, settled
from tests.enforcer.safety.recorder import Recorder
from tests.processes import Forked
from tests.proxy.running import eventually
from tests.repeating import repeating
from tests.scenarios.stage import START

_API = "/ovirt-engine/api"
#: How long the enforcer waits for an answer, and an answer that takes longer.
PATIENCE_SECONDS, _LONGER_SECONDS = 1.0, 1.5

#: Asks the engine, which then does what was asked.
Ask = Callable[[], Response]
#: Answers in place of the engine, and asks it or not.
Distorted = Callable[[Ask], Response]


class Wire:
    """Distorts requests that fit, each distortion after this many of them and this many times."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[tuple[str, re.Pattern[str], Distorted]] = []
        self._seen = Counter[str]()

    def distort(self, method: str, path: str, answer: Distorted, *, skip: int = 0, times: int = 1) -> None:
        """Let requests of the API meet this; `path` is an expression that fits what follows the API's own."""
        met = (*[_true] * skip, *[answer] * times)
        with self._lock:
            self._waiting += [(method, re.compile(path), one) for one in met]

    @property
    def waiting(self) -> bool:
        """Whether something has not struck yet."""
        with self._lock:
            return bool(self._waiting)

    def seen(self, path: str) -> int:
        """How many requests have come for this."""
        with self._lock:
            return self._seen[path]

    def around(self, application: Answer) -> Answer:
        def answer(request: Request) -> Response:
            distorted = self._take_distorted(request.method, request.path)
            return application(request) if distorted is None else distorted(lambda: application(request))

        return answer

    def _take_distorted(self, method: str, whole_path: str) -> Distorted | None:
        path = whole_path.removeprefix(_API)
        with self._lock:
            self._seen[path] += 1
            for at, (struck, pattern, _) in enumerate(self._waiting):
                if struck == method and pattern.fullmatch(path):
                    return self._waiting.pop(at)[2]
        return None


def page(status: int) -> Distorted:
    """A web server's page; the engine learns of nothing."""
    html = "<html><body><h1>It works, but not here</h1></body></html>"
    return lambda _: Response(html, status, mimetype="text/html")


def nothing(_: Ask) -> Response:
    """The connection ends; the engine learns of nothing."""
    raise _hung_up()


def silence(_: Ask) -> Response:
    """Nothing comes for longer than anybody waits."""
    threading.Event().wait(_LONGER_SECONDS)
    raise _hung_up()


def after_acting(answer: Distorted) -> Distorted:
    """This in place of the answer, though the engine has done what was asked."""

    def answer_late(ask: Ask) -> Response:
        ask()
        return answer(ask)

    return answer_late


def with_act(act: Callable[[], object], *, first: bool) -> Distorted:
    """The true answer, and something else happens before or after the engine has done what was asked."""

    def answer(ask: Ask) -> Response:
        if first:
            act()
        found = ask()
        if not first:
            act()
        return found

    return answer


def slow(ask: Ask) -> Response:
    threading.Event().wait(0.1)
    return ask()


def empty(ask: Ask) -> Response:
    """A list of nothing, as the engine itself would write it."""
    found = re.search(rb"<([a-z_]+)", ask().data)
    assert found is not None
    return _xml(b"<" + found[1] + b"/>")


def cut(ask: Ask) -> Response:
    """Half of the answer, and the connection ends."""

    def body() -> Iterator[bytes]:
        yield whole.data[: len(whole.data) // 2]
        raise _hung_up()

    whole = ask()
    return Response(body(), whole.status, whole.headers)


def half(ask: Ask) -> Response:
    """Half of the answer, as if that were all."""
    whole = ask().data
    return _xml(whole[: len(whole) // 2])


def bomb(_: Ask) -> Response:
    """Half a megabyte that unpacks to half a gigabyte and more."""
    return _xml(_packed_zeros(), {"Content-Encoding": "gzip"})


def redirect(_: Ask) -> Response:
    return Response(status=302, headers={"Location": "http://127.0.0.1:1/"})


@functools.cache
def _packed_zeros() -> bytes:
    packing = zlib.compressobj(1, wbits=31)
    return b"".join(packing.compress(bytes(2**20)) for _ in range(600)) + packing.flush()


def _true(ask: Ask) -> Response:
    return ask()


def _xml(body: bytes, headers: dict[str, str] | None = None) -> Response:
    return Response(body, headers=headers, mimetype="application/xml")


def _hung_up() -> OSError:
    """The error on which the server closes the connection."""
    return ConnectionResetError(errno.ECONNRESET, "distorted")


#: Simulated seconds a second: a migration then takes some 140 ms.
_SCALE = 25.0
_STEP_SECONDS = 0.01
#: A stopped enforcer has lost its lease when it wakes.
_LEASE_SECONDS = 0.6
#: Pauses end soon, and no limit is in the way: what holds must hold without them.
_SETTINGS = """\
[enforcer]
mode = "enforce"
strategy = "greedy"
interval_seconds = 0.2
poll_seconds = 0.05
settle_seconds = 0.3
cooldown_seconds = 0.2
cooldown_after_success_seconds = 0.0
refusal_seconds = 0.2
events_seconds = 0.5
breaker_failures = 1000
vm_migrations_per_hour = 1000
cluster_migrations_per_hour = 1000
cluster_migrations_per_cycle = 1000
"""
#: This many readings in a row find nothing to do.
_QUIET_READINGS = 3
#: Each reading of everything begins with it, and nothing else asks for it.
_READING = "/clusters"
MIGRATE = "/vms/[^/]+/migrate"


_HOSTS = ("h1", "h2", "h3")
#: A group that is made later: c2 is to part from the confined VM besides it, which cannot go.
LATE = {"name": "late", "vms_rule": APART, "vms": ["b1", "b2", "c2"]}


def drawn(seed: int) -> Snapshot:
    """The same for the same seed: two violated rules at the least, so that two migrations are needed.

    Every second cluster is so old that its labels are hard rules.
    """
    chance = random.Random(seed)
    old = seed % 2 == 1
    (one, other), (here, there), allowed = (chance.sample(_HOSTS, 2) for _ in range(3))
    confined = (
        label("confined", "b1 b2", f"{here} {there}", implicit=True)
        if old
        else group("confined", vms="b1 b2", hosts_rule=TOGETHER, hosts=f"{here} {there}")
    )
    return snapshot(
        cluster(compatibility="4.3" if old else "4.7"),
        *(host(name) for name in _HOSTS),
        # Two VMs of which one cannot be migrated, and that shall be together.
        *(vm("a1", one), vm("a2", other, migratable=False), group("a", TOGETHER, "a1 a2")),
        # Two VMs that shall be apart, on two hosts only; besides a pair that is apart and must stay so. The
        # larger one of that pair is the last that anybody would choose to move.
        *(vm("b1", here), vm("b2", here), group("b", APART, "b1 b2")),
        *(vm("c1", here), vm("c2", there, needs_mb=4096), group("c", APART, "c1 c2")),
        confined,
        # A VM that may run on two hosts only; on one of them, or not.
        vm("d1", chance.choice(_HOSTS)),
        group("d", vms="d1", hosts_rule=TOGETHER, hosts=" ".join(allowed)),
    )


class Stage:
    """What a fault acts upon: a simulated engine behind real HTTP and a wire that distorts, and processes.

    The engine outlives its server, as VMs outlive the engine; time passes quickly in it.
    """

    def __init__(self, folder: Path, state: Snapshot, patience: float, lease: float) -> None:
        """Seconds: how long the enforcer waits for the engine's answer, and its lease."""
        self.engine = Engine.from_snapshot(state, clock=START, settings=PROMPT)
        settings = msgspec.convert(tomllib.loads(_SETTINGS)["enforcer"], EnforcerSettings)
        self.recorder = Recorder(self.engine, settings, {vm.id for vm in state.vms if not vm.migratable})
        self.wire = Wire()
        self._server = self._serve("127.0.0.1:0")
        self.store = folder / "store.db"
        #: Once this is there, the clock of the enforcer's database is set back.
        self.set_back = folder / "set-back"
        self._folder = folder
        self._configuration = write_configuration(
            folder,
            self._server.api_url,
            engine=f"timeout_seconds = {patience}",
            more=f"{_SETTINGS}lease_seconds = {lease}\n",
        )
        self._enforcer: EnforcerProcess | None = None
        self._inventory: Forked | None = None

    @property
    def enforcer(self) -> EnforcerProcess:
        """The enforcer; it starts when it is first spoken of."""
        if self._enforcer is None:
            self._enforcer = EnforcerProcess(
                self._folder, "enforcer", self._configuration, NEVER, self.set_back
            )
        return self._enforcer

    def restart_enforcer(self) -> None:
        self.enforcer.kill()
        self._enforcer = None

    def start_inventory(self) -> Forked:
        words = ["inventory", "run", "--config", str(self._configuration)]
        log = self._folder / "inventory.log"
        self._inventory = started = Forked(ovirt_placement.cli.main.main, words, log, os.environ)
        assert "publishing to" in started.stdout.readline(), started.log
        return started

    def restart_engine(self, seconds: float) -> None:
        """End the server with all its sessions; another takes its place after this many simulated seconds."""
        address = self._server.url.removeprefix("http://")
        self._server.close()
        self.let_pass(seconds)
        self._server = self._serve(address)

    def expire_sessions(self) -> None:
        self._server.tokens.revoke_all()

    def let_pass(self, seconds: float) -> None:
        """Wait until this many simulated seconds have passed."""
        until = self.recorder.now + seconds
        eventually(lambda: self.recorder.now >= until)

    def at_migration(self, act: Callable[[], object], *, first: bool, number: int = 1) -> None:
        """Act when a migration is asked for, before or after the engine begins it; wait until that was."""
        done: list[bool] = []
        what = with_act(lambda: done.append(bool(act())), first=first)
        self.wire.distort("POST", MIGRATE, what, skip=number - 1)
        self.until(lambda: done)

    def until(self, condition: Callable[[], object]) -> None:
        """Wait, with an enforcer; what was said by then shows why without success."""
        _ = self.enforcer
        try:
            eventually(condition, 180)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story}") from None

    def until_over(self) -> None:
        """Wait until all faults have struck, all rules are satisfied, all ends are known."""
        self.until(lambda: not self.wire.waiting and self._is_well())
        begun, readings = len(self.recorder.ours), self.wire.seen(_READING)
        self.until(lambda: self.wire.seen(_READING) >= readings + _QUIET_READINGS)
        assert self._is_well(), self.story
        assert len(self.recorder.ours) == begun, self.story
        self.enforcer.end()

    def faults(self) -> list[str]:
        """What was wrong, in the engine and in the store's records of it."""
        return [*self.recorder.faults, *faults_of(self.store, self.recorder.ours)]

    @property
    def story(self) -> str:
        lines = [*map(str, self.recorder.ours), *map(str, records(self.store))]
        return "\n".join([*lines, "" if self._enforcer is None else self._enforcer.said])

    def close(self) -> None:
        for process in (self._enforcer, self._inventory):
            if process is not None:
                process.kill()
                process.wait()
                process.stdout.close()
        self._server.close()

    def _serve(self, listen: str) -> Server:
        server = serve(self.engine, listen)
        server._answer = self.wire.around(server._answer)
        return server

    def _is_well(self) -> bool:
        return self.recorder.repaired and settled(self.store)


@contextmanager
def stage(
    folder: Path, state: Snapshot, *, patience: float = PATIENCE_SECONDS, lease: float = _LEASE_SECONDS
) -> Iterator[Stage]:
    with (
        closing(Stage(folder, state, patience, lease)) as made,
        repeating(lambda: made.engine.advance(_STEP_SECONDS * _SCALE), every=_STEP_SECONDS),
    ):
        yield made
