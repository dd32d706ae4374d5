"""What the watch makes of readings: domains, what it cannot know, and who learns; with real processes."""

from collections.abc import Iterator
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ovirt_enforcer.log import NoticeKind
from ovirt_enforcer.notifications import Delivery, Notifications
from ovirt_enforcer.service.metrics import EnforcerMetrics
from ovirt_enforcer.watchers.ha_watch import Announcements, HaMonitor
from ovirt_enforcer.watchers.verdict import ReservationState, judge, verdict_of
from ovirt_placement.config import DomainSettings, HaSettings
from ovirt_placement.model import Snapshot
from ovirt_placement.rules.failover.check import check
from ovirt_placement.store.enforcer.leader import HaAnnouncementStore
from ovirt_service.errors import UserError
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.entities import Event
from ovirt_simulator.http.server import Server
from tests.builders import TOGETHER, cluster, host, snapshot, vm
from tests.configuration import write_configuration
from tests.enforcer.service.test_process import running
from tests.kit.notices import KeepingChannel
from tests.pages import page_named_in, samples
from tests.proxy.running import eventually

STATE = snapshot(
    cluster("c1", name="blue", ha_reservation=True, ha_failures=1),
    *(
        host(name, cluster="c1", memory_mb=10240, free_mb=free)
        for name, free in (("h1", 3500), ("h2", 3500), ("h3", 9600))
    ),
    vm("a", "h1", cluster="c1", needs_mb=6144, guaranteed_mb=6144, ha=True),
    vm("b", "h2", cluster="c1", needs_mb=6144, guaranteed_mb=6144, ha=True),
    vm("big", cluster="c1", needs_mb=8192, guaranteed_mb=8192, pinned_hosts=("h3",)),
)
UNSAFE = replace(STATE, hosts=STATE.hosts[:2])
NO_DOMAINS = HaSettings()


class Bench:
    """A watch by a simulated clock, in an epoch, with statistics of an age."""

    def __init__(self, url: str) -> None:
        self.now, self.epoch = 0.0, 1
        self.statistics_age: float | None = 0.0
        self.ears = KeepingChannel()
        self.store = HaAnnouncementStore(url, engine="default", patience_seconds=5)
        self._reported = Notifications([Delivery(self.ears, NoticeKind)], "default")
        self.restart()

    def restart(self, settings: HaSettings = NO_DOMAINS) -> None:
        """A new process: it knows what the store holds, and nothing else."""
        self.metrics = EnforcerMetrics()
        announced = Announcements(self.store, self._reported, lambda: self.now, lambda: self.epoch)
        self.watch = HaMonitor(
            announced,
            settings,
            hold_seconds=60.0,
            statistics_seconds=120.0,
            longest_pause=60.0,
            clock=lambda: self.now,
            epoch=lambda: self.epoch,
            statistics_age=lambda: self.statistics_age,
            report=self.metrics.judged,
        )

    def show(self, state: Snapshot) -> None:
        """A look, and what comes of it."""
        self.now += 1.0
        self.watch.observe(state)
        self.settle()

    def settle(self) -> None:
        while answers := self.watch.answers():
            wait(answers, 30)
            self.watch.tend()
        self.watch.tend()

    def delivered(self) -> bool:
        """Whether all that was written down is noted as reported."""
        self.watch.tend()
        return all(one.reported for one in self.store.announcements())

    def value(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"ovirt_placement_enforcer_ha_{name}", labels)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    found = Bench(f"sqlite:///{tmp_path}/store.db")
    yield found
    found.watch.close()
    found.store.close()


def test_old_statistics_prove_nothing_and_clear_nothing(bench: Bench) -> None:
    bench.show(UNSAFE)
    eventually(bench.delivered)
    for age in (121.0, None):
        bench.statistics_age = age
        bench.show(STATE)
        bench.now += 61.0
        bench.show(STATE)
        eventually(bench.delivered)
    assert bench.ears.kinds == [NoticeKind.HA_ALERT, NoticeKind.HA_UNKNOWN]
    assert bench.ears.heard[1].facts["reason"] == "the statistics are 121 s old"
    assert bench.value("safe", cluster="blue") != bench.value("safe", cluster="blue")  # NaN
    bench.statistics_age = 119.0
    bench.show(STATE)
    bench.now += 121.0
    bench.show(STATE)
    eventually(bench.delivered)
    assert (bench.ears.kinds[2:], bench.value("safe", cluster="blue")) == ([NoticeKind.HA_ALL_CLEAR], 1)


def test_a_restart_and_another_epoch_report_nothing_again(bench: Bench) -> None:
    bench.show(UNSAFE)
    eventually(bench.delivered)
    bench.restart()
    bench.show(UNSAFE)
    bench.epoch = 2
    bench.show(UNSAFE)
    eventually(bench.delivered)
    assert bench.ears.kinds == [NoticeKind.HA_ALERT]


def test_what_was_judged_in_another_epoch_is_not_reported(bench: Bench) -> None:
    bench.watch.observe(UNSAFE)
    bench.epoch = 2
    bench.settle()
    assert bench.store.announcements() == ()


@pytest.mark.system
def test_what_nobody_took_is_offered_again(bench: Bench) -> None:
    bench.ears.refusals = [UserError("not now")]
    bench.show(UNSAFE)
    eventually(lambda: not bench.ears.refusals)
    for _ in range(3):
        bench.now += 61.0
        bench.show(UNSAFE)
    eventually(bench.delivered)
    assert bench.ears.kinds == [NoticeKind.HA_ALERT]


def test_a_reservation_that_is_switched_off_takes_its_alert_back(bench: Bench) -> None:
    bench.show(UNSAFE)
    assert (bench.value("safe", cluster="blue"), bench.value("vms_without_home", cluster="blue")) == (0, 1)
    assert bench.value("failures_survived", cluster="blue") == 0
    off = replace(UNSAFE, clusters=(cluster("c1", name="blue"),))
    bench.show(off)
    bench.now += 61.0
    bench.show(off)
    eventually(bench.delivered)
    assert bench.ears.kinds == [NoticeKind.HA_ALERT, NoticeKind.HA_ALL_CLEAR]
    assert bench.value("safe", cluster="blue") is None


def test_a_cluster_that_is_gone_is_reported_without_its_id(bench: Bench) -> None:
    bench.show(UNSAFE)
    gone = snapshot(cluster("c2", name="red"))
    bench.show(gone)
    bench.now += 61.0
    bench.show(gone)
    eventually(bench.delivered)
    assert [(notice.kind, notice.cluster) for notice in bench.ears.heard] == [
        (NoticeKind.HA_ALERT, "c1"),
        (NoticeKind.HA_ALL_CLEAR, None),
    ]


def domains(**hosts: tuple[str, ...]) -> HaSettings:
    return HaSettings(domains=tuple(DomainSettings(name=name, hosts=own) for name, own in hosts.items()))


def test_a_failure_domain_fails_whole() -> None:
    assert judge(STATE, "c1", NO_DOMAINS).state is ReservationState.SAFE
    found = judge(STATE, "c1", domains(rack=("h1", "h2"), spare=("h3",)))
    assert (found.state, found.failures_survived, found.vms_without_home) == (ReservationState.UNSAFE, 1, 1)
    assert (
        "if failure domain rack failed, no home would be left for 1 VM (6144 MiB): " in found.facts["losses"]
    )
    assert found.facts["missing_mb"] == "6144"


def test_a_domain_that_nobody_knows_makes_the_answer_unknown() -> None:
    found = judge(STATE, "c1", domains(rack=("h1", "h9")))
    assert (found.state, found.facts["reason"]) == (
        ReservationState.UNKNOWN,
        '[ha] domain "rack": no host "h9"; did you mean "h3"?',
    )


def test_what_is_safe_until_a_migration_ends_is_not_known_and_a_domain_that_is_not_is_reported() -> None:
    h1, h2, h3 = STATE.hosts
    a, b, big = STATE.vms
    hosts = h1, replace(h2, status="preparing_for_maintenance"), h3
    state = replace(STATE, hosts=hosts, vms=(a, replace(b, status="migrating", migrating_to="h1"), big))
    found = judge(state, "c1", domains(spare=("h3",)))
    reason = "each failure is survived at this moment; that of h1 is not once b is on h1"
    assert (found.state, found.facts.get("reason")) == (ReservationState.UNKNOWN, reason)
    assert judge(state, "c1", domains(rack=("h1", "h2"))).state is ReservationState.UNSAFE


@pytest.mark.parametrize("of_hosts", [True, None])
@pytest.mark.parametrize("of_domains", [True, None, "there are none"])
def test_safe_is_what_is_proven_of_hosts_and_of_domains(
    of_hosts: bool | None, of_domains: bool | str | None
) -> None:
    proven = check(STATE, "c1")
    assert proven.safe
    others = None if of_domains == "there are none" else replace(proven, safe=of_domains)
    found = verdict_of(STATE, "c1", replace(proven, safe=of_hosts), others, 0.0)
    is_safe = of_hosts is True and of_domains in (True, "there are none")
    assert found.state is (ReservationState.SAFE if is_safe else ReservationState.UNKNOWN)


def crowd(count: int) -> tuple[Any, ...]:
    return tuple(vm(f"v{number}", "h1", cluster="c1", needs_mb=4096, ha=True) for number in range(count))


def test_a_sentence_does_not_grow_with_the_cluster() -> None:
    state = snapshot(
        cluster("c1", ha_reservation=True),
        *(host(f"h{number}", cluster="c1", free_mb=1000) for number in range(1, 60)),
        *crowd(200),
        *(vm(f"w{number}", f"h{number}", cluster="c1", needs_mb=4096, ha=True) for number in range(2, 60)),
    )
    found = judge(state, "c1", NO_DOMAINS)
    assert len(found.facts["losses"]) < 1000
    assert found.facts["vms_without_home"] == "200"
    assert "; and 56 more sets of hosts must not fail" in found.facts["losses"]


#: Two hosts with a VM of 6 GiB each and a spare one: one of the three may fail.
SETTINGS = """\
[enforcer]
interval_seconds = 0.3
events_seconds = 0.1
metrics = "127.0.0.1:0"
[enforcer.ha]
hold_seconds = 0.05
"""


def our_events(engine: Engine) -> list[Event]:
    """The oldest first."""
    events = [event for event in engine.queries.events() if event.origin == "ovirt-placement"]
    return sorted(events, key=lambda event: event.id)


def reported(engine: Engine) -> list[str]:
    """The severities of our events."""
    return [event.severity for event in our_events(engine)]


@pytest.mark.system
def test_hosts_that_fail_and_return_a_rule_and_a_full_host_are_reported_once_each(
    engine: Engine, server: Server, tmp_path: Path
) -> None:
    with running(write_configuration(tmp_path, server.api_url, more=SETTINGS)) as process:
        page = page_named_in(process.log)

        def value(name: str) -> float | None:
            return samples(page).get((f"ovirt_placement_enforcer_ha_{name}", "blue"))

        def last(*severities: str) -> str:
            """What is said of the last event, once there are these."""
            engine.advance(60)
            eventually(lambda: reported(engine) == [*severities])
            return our_events(engine)[-1].description or ""

        eventually(lambda: value("safe") == 1)
        assert (value("failures_survived"), value("vms_without_home")) == (1, 0)
        assert reported(engine) == []
        engine.hosts.deactivate("h3")
        said = last("alert")
        for name, left in (("h1", "a"), ("h2", "b")):
            assert f"if host {name} failed, no home would be left for 1 VM (6144 MiB): {left}" in said
        engine.hosts.activate("h3")
        last(*(good := ["alert", "normal"]))
        group = engine.affinity_groups.add("c1", name="here", hosts_rule=TOGETHER, vms=["a"], hosts=["h1"])
        said = last(*good, "alert")
        assert ("if host h1 failed" in said, "if host h2 failed" in said) == (True, False)
        engine.affinity_groups.remove(group.id)
        last(*good * 2)
        engine.vms.start("big")
        last(*good * 2, "alert")
        engine.vms.stop("big")
        last(*good * 3)
        eventually(lambda: value("safe") == 1)
        assert reported(engine) == good * 3
        process.end()
