"""A small cluster with a violated pair: daemons on a simulated clock, and an executor for single steps."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from ovirt_enforcer.actions.executor import Executor, Task
from ovirt_enforcer.gates.admission import Observation
from ovirt_enforcer.service.daemon import Daemon
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.model import Snapshot
from ovirt_placement.store.enforcer.intents import Intent, Store
from ovirt_placement.store.orders import ALL_CLUSTERS, PauseStore
from ovirt_simulator.core import backend
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import CLUSTER, TOGETHER, group, host, snapshot, vm
from tests.enforcer.gates.judging import gates, step
from tests.scenarios.stage import START, configured, daemon_of, simulated_time

STATE = snapshot(
    host("h1"), host("h2"), vm("a", "h1"), vm("b", "h2", migratable=False), group("pair", TOGETHER, "a b")
)
STEP = step(groups="pair")
#: Of the section [enforcer].
Settings = Mapping[str, Any]
ENFORCE: Settings = {"mode": "enforce"}


class Bench:
    """One simulated engine, its server, and a store; time passes by `now`."""

    def __init__(
        self, folder: Path, state: Snapshot, settings: Settings, how: backend.Settings = backend.PROMPT
    ) -> None:
        self.engine = Engine.from_snapshot(state, clock=START, settings=how)
        self.server = serve(self.engine)
        self.config = configured(folder, self.server.api_url, {**settings})
        values = ((key, value) for key, value in settings.items() if not isinstance(value, dict))
        with (folder / "placement.toml").open("a") as file:  # for commands
            file.writelines(["[enforcer]\n", *(f"{key} = {json.dumps(value)}\n" for key, value in values)])
        self.now = 0.0
        #: How far the database's clock was set back.
        self.set_back = 0.0
        #: Opened unlike daemons open it, who would share it: what one holds that is killed ends with it.
        self.store = Store(self.config.store.url, engine="default", patience_seconds=4)
        #: Whether the process still leads, as the executor learns.
        self.leads = True

    @contextmanager
    def connected(self) -> Iterator[EngineConnection]:
        with EngineConnection(self.config.engine) as connection:
            yield connection

    @contextmanager
    def enforcing(self, **how: Any) -> Iterator[Daemon]:
        with self.connected() as connection, daemon_of(self.config, connection, self.clock, **how) as daemon:
            yield daemon

    def cycle(self, daemon: Daemon, times: int = 1) -> None:
        for _ in range(times):
            self.pass_time(max(1.0, daemon.cycle()))

    def run(self, daemon: Daemon, until: float) -> None:
        while self.now < until:
            self.pass_time(min(max(1.0, daemon.cycle()), until - self.now))

    def executor(self, connection: EngineConnection) -> Executor:
        settings = EnforcerSettings(mode=Mode.ENFORCE)
        return Executor(connection, self.store, settings, self.clock, lambda epoch: self.leads)

    def task(self, fresh_until: float) -> Task:
        """The step that repairs the pair; nobody else leads."""
        asked, epoch = gates(), cast("int", None)
        seen = Observation(snapshot=STATE, gates=asked, open_intents=(), epoch=epoch, fresh_until=fresh_until)
        return Task(asked.admit(STATE, CLUSTER, STEP), seen, "plan", 1)

    def clock(self) -> float:
        return self.now

    def pass_time(self, seconds: float) -> None:
        self.engine.advance(seconds)
        self.now += seconds

    def pause(self) -> None:
        """Everything, as `ovirt-enforcer pause` does it in a process of its own."""
        with self._pauses() as pauses:
            pauses.pause(ALL_CLUSTERS, cluster_name="", reason="", set_by="eve", seconds=None)

    def resume(self) -> None:
        with self._pauses() as pauses:
            pauses.resume(ALL_CLUSTERS, set_by="eve")

    def _pauses(self) -> closing[PauseStore]:
        return closing(PauseStore(self.config.store.url, engine="default", patience_seconds=5))

    def intents(self) -> list[Intent]:
        return [*self.store.history(within_seconds=1e6), *self.store.open_intents()]

    def begun(self) -> list[str]:
        """The VMs whose migrations the engine began, in order."""
        events = sorted(self.engine.queries.events(), key=lambda event: event.id)
        return [event.vm.name for event in events if event.code == 62 and event.vm is not None]

    def close(self) -> None:
        self.store.close()
        self.server.close()


_Bench = TypeVar("_Bench", bound=Bench)


@contextmanager
def bench(
    folder: Path,
    state: Snapshot = STATE,
    settings: Settings = ENFORCE,
    kind: Callable[[Path, Snapshot, Settings], _Bench] = Bench,
) -> Iterator[_Bench]:
    made = kind(folder, state, settings)
    with simulated_time(lambda: made.now - made.set_back):
        try:
            yield made
        finally:
            made.close()
