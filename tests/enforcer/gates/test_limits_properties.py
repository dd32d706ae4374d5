"""Whatever is asked for, and however migrations end: no limit is passed, at no moment."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ovirt_enforcer.gates.admission import Closed
from ovirt_enforcer.settings import EnforcerSettings, Mode
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.planning.plan import Step
from ovirt_placement.store.enforcer.intents import Cause, Intent, IntentState
from tests.builders import cluster, host, snapshot, vm
from tests.examples import examples

from .judging import gates, intent

CLUSTERS, HOSTS, VMS = ("c0", "c1"), 3, 6
ENDS = (IntentState.DONE, IntentState.FAILED, None)


class Wish(NamedTuple):
    """To wait, to end the longest migration under way, and to ask for a few steps at once."""

    wait: float
    end: IntentState | None
    refuse: bool
    #: VMs, the first of which names the source, with the number of a target.
    steps: list[tuple[int, list[int], int]]


WISHES = st.builds(
    Wish,
    wait=st.sampled_from((1.0, 30.0, 61.0, 700.0, 1900.0)),
    end=st.sampled_from(ENDS),
    refuse=st.booleans(),
    steps=st.lists(
        st.tuples(
            st.integers(0, 1),
            st.lists(st.integers(0, VMS - 1), min_size=1, max_size=3, unique=True),
            st.integers(0, HOSTS - 1),
        ),
        max_size=5,
    ),
)
LIMITS = st.builds(
    EnforcerSettings,
    mode=st.just(Mode.ENFORCE),
    migrations_at_once=st.integers(1, 5),
    cluster_migrations_at_once=st.integers(1, 4),
    host_migrations_out=st.integers(1, 3),
    host_migrations_in=st.integers(1, 3),
    cluster_migrations_per_cycle=st.integers(1, 6),
    cluster_migrations_per_hour=st.integers(1, 9),
    vm_migrations_per_hour=st.integers(1, 3),
    breaker_failures=st.integers(2, 4),
)


@dataclass
class Run:
    """One migration that began, in seconds of the world's clock."""

    vm: str
    cluster: str
    source: str
    target: str
    began: float
    #: Others with the same number are of the same step.
    step: int
    ended: float | None = None
    state: IntentState = IntentState.ACCEPTED
    cause: Cause | None = None

    def intent(self, now: float) -> Intent:
        updated = self.began if self.ended is None else self.ended
        return intent(
            self.state,
            now - updated,
            self.vm,
            None,
            cluster=self.cluster,
            source=self.source,
            target=self.target,
            correlation_id=f"{self.step}-{self.vm}",
            created=self.began,
            updated=updated,
            cause=self.cause,
        )


class World:
    """Two clusters without any rule, in which an enforcer and others migrate."""

    def __init__(self, limits: EnforcerSettings, foreign: set[int]) -> None:
        self.limits = limits
        self.now = 0.0
        self.runs: list[Run] = []
        self.places = {f"{c}v{v}": f"{c}h{v % HOSTS}" for c in CLUSTERS for v in range(VMS)}
        #: VMs that others migrate, it is not known where to.
        self.foreign = {f"c0v{number}" for number in foreign}

    def live(self, wish: Wish) -> None:
        self.now += wish.wait
        if wish.end is not None and (moving := list(self.under_way())):
            self._end(moving[0], wish.end, refuse=wish.refuse)
        state, asked = (
            self.state(),
            gates(self.limits, self._intents(ended=False), history=self._intents(ended=True)),
        )
        for at, numbers, target in wish.steps:
            step = self._step(CLUSTERS[at], numbers, target)
            try:
                asked.admit(state, CLUSTERS[at], step)
            except Closed:
                continue
            self._begin(CLUSTERS[at], step)
            self.check(CLUSTERS[at], step)

    def state(self) -> Snapshot:
        moving = {run.vm for run in self.under_way()} | self.foreign
        return snapshot(
            *map(cluster, CLUSTERS),
            *(host(f"{c}h{number}", cluster=c) for c in CLUSTERS for number in range(HOSTS)),
            *(self._vm(name, moving) for name in self.places),
        )

    def under_way(self) -> Iterator[Run]:
        return (run for run in self.runs if run.ended is None)

    def check(self, where: str, step: Step) -> None:
        """Count again, from what began and has not ended: a step passes no limit, unless it stands alone."""
        limits, size = self.limits, len(step.vms)
        moving = [(run.source, run.target, run.cluster, run.vm) for run in self.under_way()]
        moving += [(self.places[vm], "nobody knows", "c0", vm) for vm in self.foreign]
        begun = [run for run in self.runs if run.cause is not Cause.TARGET_REFUSED]
        hour = [run for run in begun if self.now - run.began < 3600.0]
        cycle = [run for run in begun if self.now - run.began < limits.interval_seconds]
        counts = (
            (len(moving), limits.migrations_at_once),
            (sum(one[2] == where for one in moving), limits.cluster_migrations_at_once),
            (sum(one[0] == step.sources[0] for one in moving), limits.host_migrations_out),
            (sum(one[1] == step.target for one in moving), limits.host_migrations_in),
            (sum(run.cluster == where for run in hour), limits.cluster_migrations_per_hour),
            (sum(run.cluster == where for run in cycle), limits.cluster_migrations_per_cycle),
        )
        assert all(count <= limit or count == size for count, limit in counts), counts
        of_vm = Counter(run.vm for run in hour)
        assert max(of_vm.values()) <= limits.vm_migrations_per_hour
        assert max(Counter(one[3] for one in moving).values()) == 1

    def _vm(self, name: str, moving: set[str]) -> Vm:
        status = "migrating" if name in moving else "up"
        return replace(vm(name, self.places[name], cluster=name[:2]), status=status)

    def _step(self, where: str, numbers: list[int], target: int) -> Step:
        first = f"{where}v{numbers[0]}"
        names = [f"{where}v{number}" for number in numbers]
        together = tuple(name for name in names if self.places[name] == self.places[first])
        sources = tuple(self.places[name] for name in together)
        goal = f"{where}h{target}"
        if goal in sources:
            goal = f"{where}h{(target + 1) % HOSTS}"
        return Step(vms=together, sources=sources, target=goal, groups=(), repairs=())

    def _begin(self, where: str, step: Step) -> None:
        number = len(self.runs)
        for name, source in zip(step.vms, step.sources, strict=True):
            self.runs.append(Run(name, where, source, step.target, self.now, number))

    def _end(self, run: Run, state: IntentState, *, refuse: bool) -> None:
        run.ended, run.state = self.now, state
        if state is IntentState.DONE:
            self.places[run.vm] = run.target
        elif refuse:
            run.cause = Cause.TARGET_REFUSED

    def _intents(self, *, ended: bool) -> tuple[Intent, ...]:
        return tuple(run.intent(self.now) for run in self.runs if (run.ended is not None) is ended)


@settings(max_examples=examples(100))
@given(LIMITS, st.sets(st.integers(0, VMS - 1), max_size=2), st.lists(WISHES, max_size=25))
def test_no_limit_is_ever_passed(limits: EnforcerSettings, foreign: set[int], wishes: list[Wish]) -> None:
    world = World(limits, foreign)
    for wish in wishes:
        world.live(wish)
