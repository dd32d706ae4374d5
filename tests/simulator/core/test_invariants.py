"""Whatever is commanded and whatever goes wrong: the engine's books always agree."""

import contextlib
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ovirt_simulator.core.backend import MigrationFault, Settings
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.messages import Rejected
from tests.builders import APART, TOGETHER, group, host, needed_mb, vm
from tests.examples import examples
from tests.simulator.core import engines

HOSTS = ("h1", "h2", "h3")
VMS = ("a", "b", "c", "d", "e", "f")
MEMORY = {"a": 1024, "b": 2048, "c": 512, "d": 1024, "e": 4096, "f": 1024}
FREE = {"h1": 6000, "h2": 4096, "h3": 5000}
#: What an engine shows late and out of order; what it counts late it may give away twice.
SLOPPY = Settings(
    state_lag_seconds=2.0, late_event_probability=0.3, late_event_seconds=5.0, memory_count_seconds=0.0
)
GOES_ON = {"wait_for_launch", "powering_up", "powering_down", "saving_state", "migrating", "restoring_state"}


def fresh() -> Engine:
    return engines.engine(
        *(host(name, free_mb=FREE[name]) for name in HOSTS),
        *(vm(name, memory_mb=MEMORY[name], ha=name in "ab") for name in VMS),
        group("together", TOGETHER, "a b"),
        group("apart", APART, "c d"),
        settings=SLOPPY,
        seed=5,
    )


class Administration(RuleBasedStateMachine):
    """Commands in any order, with time and accidents between them."""

    def __init__(self) -> None:
        super().__init__()
        self.engine = fresh()
        self.seen: dict[int, Any] = {}
        #: A VM did not go where the scheduler sent it: the engine has given its place away by then.
        self.astray = False

    @rule(vm_id=st.sampled_from(VMS), command=st.sampled_from(["start", "stop", "shutdown", "suspend"]))
    def command(self, vm_id: str, command: str) -> None:
        with contextlib.suppress(Rejected):
            getattr(self.engine.vms, command)(vm_id)

    @rule(vm_id=st.sampled_from(VMS), host_id=st.sampled_from([None, *HOSTS]), closure=st.booleans())
    def migrate(self, vm_id: str, host_id: str | None, closure: bool) -> None:
        with contextlib.suppress(Rejected):
            self.engine.vms.migrate(vm_id, host_id=host_id, closure=closure)

    @rule(vm_id=st.sampled_from(VMS), command=st.sampled_from(["cancel_migration", "crash"]))
    def disturb(self, vm_id: str, command: str) -> None:
        with contextlib.suppress(Rejected):
            getattr(self.engine.vms, command)(vm_id)
        self.astray = True

    @rule(fault=st.sampled_from(["fail", "hang", "refuse"]), vm_id=st.sampled_from(VMS))
    def plan_fault(self, fault: str, vm_id: str) -> None:
        self.astray = True
        self.engine.faults.expect(MigrationFault(**{fault: True}), identity=vm_id)

    @rule(
        host_id=st.sampled_from(HOSTS), command=st.sampled_from(["fail", "recover", "deactivate", "activate"])
    )
    def host_command(self, host_id: str, command: str) -> None:
        with contextlib.suppress(Rejected):
            getattr(self.engine.hosts, command)(host_id)
        self.astray = self.astray or command == "fail"

    @rule(seconds=st.sampled_from([0, 0.3, 1, 4, 10, 60]))
    def advance(self, seconds: float) -> None:
        self.engine.advance(seconds)

    @invariant()
    def memory_is_taken_by_those_who_are_there_or_on_their_way(self) -> None:
        for known in self.engine.queries.state.hosts.values():
            taken = sum(
                needed_mb(v)
                for v in self.engine.queries.state.vms.values()
                if known.id in (v.host, v.migrating_to)
            )
            assert known.free_mb == FREE[known.id] - taken
            assert known.free_mb >= 0

    @invariant()
    def a_vm_has_a_host_exactly_when_it_is_not_down(self) -> None:
        for known in self.engine.queries.state.vms.values():
            assert (known.host is None) == (known.status in {"down", "suspended"})
            assert known.migrating_to is None or known.status == "migrating"
            assert not known.handed_over or known.host == known.migrating_to

    @invariant()
    def nothing_happens_on_a_host_in_maintenance(self) -> None:
        for known in self.engine.queries.state.hosts.values():
            if known.status == "maintenance":
                assert not self.engine.queries.state.vms_on(known.id)

    @invariant()
    def hard_rules_are_satisfied_by_all_that_is_scheduled(self) -> None:
        apart = [engines.vm(self.engine, name) for name in "cd"]
        places = [v.migrating_to or v.host for v in apart if v.host is not None]
        assert self.astray or len(set(places)) == len(places)

    @invariant()
    def events_keep_their_ids_and_words(self) -> None:
        events = self.engine.queries.events()
        ids = [event.id for event in events]
        assert ids == sorted(set(ids), reverse=True)
        for event in events:
            assert self.seen.setdefault(event.id, event) == event
            assert "{" not in event.description
        assert set(self.seen) == set(ids)

    def teardown(self) -> None:
        """Once hosts answer and faults are over, everything comes to rest, but for what hangs."""
        self.engine.faults.clear()
        for known in self.engine.queries.state.hosts.values():
            self.engine.hosts.recover(known.id)
        for known in self.engine.queries.state.vms.values():
            with contextlib.suppress(Rejected):
                self.engine.vms.cancel_migration(known.id)
        self.engine.advance(600)
        for known in self.engine.queries.state.vms.values():
            assert known.status not in GOES_ON | {"unknown"}
        newest = max((event.id for event in self.engine.queries.events()), default=0)
        self.engine.advance(SLOPPY.late_event_seconds)
        assert {event.id for event in self.engine.queries.events()} >= set(range(1, newest + 1))
        for job in self.engine.queries.jobs():
            assert job.status != "started" or "Maintenance" in job.description
        self.memory_is_taken_by_those_who_are_there_or_on_their_way()


Administration.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=40, deadline=None)
TestAdministration = Administration.TestCase


def test_the_same_seed_and_commands_give_the_same_run() -> None:
    def run(seed: int) -> tuple[Any, ...]:
        engine = engines.engine(*map(host, HOSTS), *map(vm, VMS), settings=SLOPPY, seed=seed)
        for name in VMS:
            engine.vms.start(name)
            engine.advance(0.7)
        engine.hosts.deactivate("h1")
        engine.advance(30)
        seen = []
        for _ in range(20):
            engine.advance(1)
            seen.append(
                (tuple(engine.queries.state.vms.values()), engine.queries.events(), engine.queries.jobs())
            )
        return tuple(seen)

    assert run(1) == run(1)
    assert run(1) != run(2)
