"""What is read on demand: statistics where a rule asks for them, what keys refer to, searches of rules."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.on_demand import KnownSearches, needed, searches_of
from ovirt_placement.inventory.publication import age
from ovirt_placement.model import MemberSearch, SchedulingPolicy, Snapshot
from ovirt_placement.model.snapshot import HOST_STATISTICS, HOST_TAGS, VM_STATISTICS, Needed
from ovirt_placement.rules.placement_rules.kind import resolved_rules
from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from ovirt_placement.store.sql.access import opened
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server
from tests import builders as build
from tests.builders import key, rule
from tests.configuration import write_configuration
from tests.placement.engine.simulated import owned, simulated
from tests.placement.inventory.running import ended, loaded, running
from tests.placement.inventory.test_stored_keys import publication, published, soon
from tests.stored import put_keys

OF_HOSTS = frozenset({HOST_STATISTICS})
OF_ALL = frozenset({HOST_STATISTICS, VM_STATISTICS})


NONE: Needed = frozenset()


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ({"filters": ("AffinityFilter",), "weights": {"X": 1}}, NONE),
        ({"engine_filters": ("CPU", "Memory")}, NONE),
        ({"engine_filters": ("CPU", "CPUOverloaded")}, OF_HOSTS),
        ({"balance": "HaReservationBalance"}, OF_ALL),
        ({"filters": ("PlacementKeyFilter",)}, OF_HOSTS),
        ({"weights": {"PlacementKeyWeight": 2}}, OF_HOSTS),
    ],
)
def test_what_is_needed_is_what_enabled_rules_ask(policy: dict[str, Any], wanted: Needed) -> None:
    asking = build.cluster("asking", scheduling_policy=SchedulingPolicy(**policy))
    assert needed((build.cluster("plain"), asking)) == wanted


@pytest.mark.parametrize(("reservation", "wanted"), [(False, NONE), (True, OF_ALL)])
def test_a_reservation_needs_statistics_and_tags_of_hosts_where_they_name_domains(
    reservation: bool, wanted: Needed
) -> None:
    clusters = (build.cluster(ha_reservation=reservation),)
    assert needed(clusters, tagged=False) == wanted
    assert needed(clusters, tagged=True) == wanted | OF_HOSTS | {HOST_TAGS}


def state(*, ha_reservation: bool) -> Snapshot:
    return build.snapshot(
        build.cluster(ha_reservation=ha_reservation),
        build.host("h", cpu_percent=40, load_average_5m=7.5, tags=("rack-1",)),
        build.vm("v", "h"),
    )


@contextmanager
def followed(folder: Path, *, ha_reservation: bool) -> Iterator[Path]:
    with simulated(state(ha_reservation=ha_reservation)) as (_, server, _):
        yield write_configuration(folder, server.api_url)


def measured(snapshot: Snapshot) -> bool:
    (host,), (vm,) = snapshot.hosts, snapshot.vms
    of_host, of_vm = (host.cpu_percent, host.load_average_5m), (vm.usage_mem_percent, vm.usage_cpu_percent)
    return (of_host, of_vm) == ((40, 7.5), (50, 10))


def test_the_service_publishes_them_with_their_age(tmp_path: Path) -> None:
    with followed(tmp_path, ha_reservation=True) as file, running(file) as service:
        config = loaded(file)
        while not measured(inventory.snapshot(config=config)):
            assert inventory.wait_for_change(30, config=config)
        seconds = age(publication(config).moments.statistics_at)
        assert seconds is not None
        assert 0 <= seconds < 60
        ended(service)


def test_where_only_a_filter_of_the_engines_asks_no_vm_is_measured(tmp_path: Path) -> None:
    with followed(tmp_path, ha_reservation=False) as file, running(file) as service:
        found = build.snapshot(build.host("h", measured=False))
        while not found.hosts[0].measured:
            found = inventory.snapshot(config=loaded(file), max_age=0, deadline=30)
        assert found.hosts[0].cpu_percent == 40
        assert found.vms[0].usage_cpu_percent is None
        ended(service)


TAGGED = '[ha]\ndomain_tags = ["rack-"]\n'


@pytest.mark.parametrize("tagged", [True, False])
@pytest.mark.parametrize("needed", [True, False])
def test_without_a_service_they_are_read_where_they_are_needed(
    tmp_path: Path, needed: bool, tagged: bool
) -> None:
    """Tags of hosts where they name domains."""
    with followed(tmp_path, ha_reservation=needed) as file:
        file.write_text(file.read_text() + (TAGGED if tagged else ""))
        found = inventory.snapshot(config=loaded(file))
    assert measured(found) == needed
    assert found.hosts[0].tags == (("rack-1",) if tagged else ())


WANTED = frozenset({("vms", "name=a*"), ("hosts", "name=h*")})


def answer(found: tuple[str, ...] | None, problem: str = "") -> MemberSearch:
    return MemberSearch(of="vms", text="name=a*", found=found, problem=problem)


def test_searches_are_those_that_rules_name() -> None:
    two = (
        rule("a", "separate", "search:name=a*", other_vms="x search:name=a*", hosts="search:name=h*"),
        rule("b", "spread", "tag:x"),
    )
    assert searches_of(two) == WANTED


def test_whom_it_found_counts_while_the_engine_refuses_it_and_somebody_wants_it() -> None:
    known = KnownSearches()
    known.want(WANTED)
    for said in (answer(None, "refused"), answer(("v1",))):
        known.put([said])
        assert known.found == (said,)
    known.put([answer(None, "refused")])
    (kept,) = known.found
    assert kept.found == ("v1",)
    assert kept.problem.startswith("refused; whom it found at 2")
    known.put([answer(None, "refused")])
    assert known.found == (kept,)
    known.put([answer(())])
    assert known.found == (answer(()),)
    known.want(frozenset())
    assert known.found == ()
    known.put([answer(("v1",))])  # asked before it was forgotten
    assert known.found == ()


# The service has read what keys and rules of the store ask for, and publishes it; and nothing else.

OWNED = owned(1100)
FEW = build.rule("few", "at_most_per_host", "search:name=db*", most=1)
SEARCHED = build.snapshot(build.host("h1"), build.host("h2"), build.vm("db1", "h1"), build.vm("web1", "h2"))


class Stage:
    """An engine with a name, a store, and the configuration of a service that follows both."""

    def __init__(self, folder: Path, engine: Engine, server: Server, interval_seconds: float) -> None:
        self.engine, self.server = engine, server
        lines = f"interval_seconds = {interval_seconds}\n"
        patient = "patience_seconds = 30.0"
        self.file = write_configuration(
            folder, server.api_url, engine='name = "east"', inventory=lines, store=patient
        )
        self.config = loaded(self.file)

    def set_key(self, level: str) -> None:
        with opened(KeyStore, self.config) as store:
            put_keys(store, (key("A", level=level),))

    def put_rule(self) -> None:
        with opened(RuleStore, self.config) as store:
            store.change(lambda standing: RuleChange(put=(FEW,)), changed_by="a")

    def until(self, holds: Callable[[Snapshot], bool]) -> Snapshot:
        return soon(self.config, holds)

    def details_age(self) -> float | None:
        return age(publication(self.config).moments.details_at)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with simulated(OWNED) as (engine, server, _):
        yield Stage(tmp_path, engine, server, 0.5)


@pytest.fixture
def searching(tmp_path: Path) -> Iterator[Stage]:
    with simulated(SEARCHED) as (engine, server, _):
        yield Stage(tmp_path, engine, server, 0.1)


@pytest.mark.system
def test_keys_set_while_it_runs_make_it_read_what_they_refer_to(stage: Stage) -> None:
    with running(stage.file) as service:
        stage.set_key("server")
        plain = stage.until(lambda found: len(found.placement_keys) == 1)
        assert not any(vm.disks or vm.nics or vm.owner for vm in plain.vms)
        assert stage.details_age() is None
        stage.set_key("disk_offer")
        found = stage.until(lambda found: all(vm.disks for vm in found.vms))
        assert not any(vm.nics or vm.owner for vm in found.vms)
        assert stage.details_age() is not None
        stage.set_key("network")
        found = stage.until(lambda found: all(vm.nics for vm in found.vms))
        assert (found.networks, found.vnic_profiles) == (OWNED.networks, OWNED.vnic_profiles)
        stage.set_key("customer")
        found = stage.until(lambda found: all(vm.owner for vm in found.vms))
        assert all(vm.disks and vm.nics for vm in found.vms)
        ended(service)


@pytest.mark.system
def test_it_begins_with_what_the_keys_refer_to_that_were_set_before(stage: Stage) -> None:
    stage.set_key("customer")
    with running(stage.file) as service:
        assert all(vm.owner for vm in publication(stage.config).snapshot.vms)
        ended(service)


def test_it_begins_without_them_where_they_cannot_be_read(stage: Stage) -> None:
    stage.server.disturbances.add(Disturbance(path="permissions", status=503, times=None))
    stage.set_key("customer")
    with running(stage.file) as service:
        first = publication(stage.config).snapshot
        assert first.vms
        assert not any(vm.owner for vm in first.vms)
        assert "asking again" in ended(service)


def members(found: Snapshot) -> tuple[str, ...]:
    return tuple(vm for one in resolved_rules(found) for vm in one.vms)


@pytest.mark.system
def test_a_rule_that_comes_has_its_members_and_gets_others_as_vms_change(searching: Stage) -> None:
    with running(searching.file) as service:
        assert published(searching.config).member_searches == ()
        searching.put_rule()
        found = searching.until(lambda found: members(found) == ("db1",))
        assert found.member_searches == (MemberSearch(of="vms", text="name=db*", found=("db1",)),)
        searching.engine.vms.edit("web1", name="db2")
        searching.until(lambda found: members(found) == ("db1", "web1"))
        searching.server.disturbances.add(Disturbance(path="search=name", status=500, times=None))
        searching.engine.vms.edit("db1", name="other")
        found = searching.until(lambda found: bool(found.member_searches[0].problem))
        assert members(found) == ("db1", "web1")
        searching.server.disturbances.clear()
        searching.engine.vms.edit("db1", description="changed")
        searching.until(lambda found: members(found) == ("web1",))
        ended(service)


def test_it_begins_with_who_is_found(searching: Stage) -> None:
    searching.put_rule()
    with running(searching.file) as service:
        assert members(published(searching.config)) == ("db1",)
        ended(service)
