"""The recorder sees what must never be, when somebody else than the enforcer does it."""

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Caller
from ovirt_simulator.core.messages import Rejected
from tests.builders import APART, TOGETHER, group, host, snapshot, vm
from tests.enforcer.safety.oracles import Begun, faults_of, settled
from tests.enforcer.safety.recorder import Recorder
from tests.scenarios.stage import START

#: One migration repairs it: of a1, to h2.
STATE = snapshot(
    *(host(f"h{number}") for number in (1, 2, 3)),
    vm("a1", "h1"),
    vm("a2", "h2", migratable=False),
    vm("b1", "h1"),
    vm("b2", "h3"),
    group("a", TOGETHER, "a1 a2"),
    group("b", APART, "b1 b2"),
)


class Scene:
    """An engine, and the migrations with our correlation ids."""

    def __init__(self) -> None:
        self.engine = Engine.from_snapshot(STATE, clock=START, settings=PROMPT)
        self.recorder = Recorder(self.engine, EnforcerSettings(), {"a2"})

    def migrate(self, vm_id: str, host_id: str) -> None:
        self.engine.vms.migrate(vm_id, host_id=host_id, caller=Caller(user="me", correlation_id="request"))

    @property
    def faults(self) -> list[str]:
        """Without the time."""
        return [fault.partition(": ")[2] for fault in self.recorder.faults]


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_repair_is_no_fault(scene: Scene) -> None:
    assert not scene.recorder.repaired
    scene.migrate("a1", "h2")
    assert not scene.recorder.repaired
    scene.engine.advance(60)
    assert scene.recorder.repaired
    assert scene.faults == []
    assert [(one.vm, one.target, one.arrived) for one in scene.recorder.ours] == [("a1", "h2", True)]


def test_a_second_request_for_a_vm_on_its_way(scene: Scene) -> None:
    scene.migrate("a1", "h2")
    with suppress(Rejected):
        scene.migrate("a1", "h3")
    assert scene.faults == ["asked to move a1, which is on its way to h2"]


def test_a_request_for_what_would_violate_a_rule(scene: Scene) -> None:
    with pytest.raises(Rejected):
        scene.migrate("b1", "h3")
    assert scene.faults == ["b1 is asked to go to h3, and refused"]


def test_a_migration_that_repairs_nothing(scene: Scene) -> None:
    scene.migrate("b2", "h2")
    assert scene.faults == ["b2 goes to h2: 1 migrations were left to do, and 1 are then"]


def test_a_rule_that_held_and_is_violated(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's own filters, which would refuse it, are taken away."""
    monkeypatch.setattr(scene.engine.vms._migrations, "_validated", scene.engine.vms._migrations._request)
    monkeypatch.setattr(
        scene.engine.vms._migrations._scheduler, "schedule", lambda request, begin: begin("h3")
    )
    scene.migrate("b1", "h3")
    scene.engine.advance(60)
    begins, needless, arrives = scene.faults
    assert begins == "b1 begins to move to h3, which violates b1, b2 apart"
    assert needless == "b1 goes to h3: 1 migrations were left to do, and 2 are then"
    assert arrives == "b1 has arrived on h3, which violates b1, b2 apart"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    file = tmp_path / "store.db"
    with closing(sqlite3.connect(file)) as made:
        made.execute("CREATE TABLE intents (vm, target, correlation_id, state, error)")
        made.commit()
    return file


@pytest.mark.parametrize(
    ("state", "complaint"),
    [("done", None), ("failed", "no record says done"), ("accepted", "open at the end"), (None, "no record")],
)
def test_a_record_that_is_missing_or_open_or_wrong(
    store: Path, state: str | None, complaint: str | None
) -> None:
    begun = Begun("a1", "h1", "h2", "request", at=0.0, tick=0, reading=0, arrived=True)
    with closing(sqlite3.connect(store)) as file:
        if state is not None:
            file.execute("INSERT INTO intents VALUES ('a1', 'h2', 'request', ?, NULL)", [state])
        file.commit()
    found = list(faults_of(store, [begun]))
    assert (not found) if complaint is None else found[0].startswith(complaint)
    assert settled(store) == (state != "accepted")


def test_a_record_of_what_never_was(store: Path) -> None:
    with closing(sqlite3.connect(store)) as file:
        file.execute("INSERT INTO intents VALUES ('a1', 'h2', 'request', 'done', NULL)")
        file.commit()
    (fault,) = faults_of(store, [])
    assert fault.startswith("recorded, and never was")
