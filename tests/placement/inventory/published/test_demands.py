"""The service has read what keys and rules of the store ask for, and publishes it; and nothing else."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.config import Config
from ovirt_placement.inventory.publication import age
from ovirt_placement.model import Disk, MemberSearch, Network, Nic, Snapshot, VnicProfile
from ovirt_placement.rules.placement_rules.kind import resolved_rules
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server, serve
from tests import builders as build
from tests.configuration import write_configuration
from tests.placement.inventory.published.key_store import key, opened, publication, published, soon
from tests.placement.inventory.running import ended, loaded, running
from tests.stored import put_keys

VMS = 1100


def state() -> Snapshot:
    vms = (
        build.vm(
            f"vm{number:04}",
            owner=f"user{number}",
            disks=(Disk(id=f"disk{number}", bootable=True, profile="fast"),),
            nics=(Nic(id=f"nic{number}", name="nic1", vnic_profile="p"),),
        )
        for number in range(VMS)
    )
    return replace(
        build.snapshot(build.host("h"), *vms),
        networks=(Network(id="net", name="net"),),
        vnic_profiles=(VnicProfile(id="p", name="p", network="net"),),
    )


FEW = build.rule("few", "at_most_per_host", "search:name=db*", most=1)
SEARCHED = build.snapshot(build.host("h1"), build.host("h2"), build.vm("db1", "h1"), build.vm("web1", "h2"))


class Stage:
    """An engine, a store, and the configuration of a service that follows both."""

    def __init__(self, folder: Path, shown: Snapshot, interval_seconds: float) -> None:
        self.engine = Engine.from_snapshot(shown, clock=datetime(2026, 1, 1, tzinfo=UTC), settings=PROMPT)
        self.server: Server = serve(self.engine)
        self.file = write_configuration(
            folder,
            self.server.api_url,
            inventory=f"interval_seconds = {interval_seconds}\n",
            store="patience_seconds = 30.0",
        )
        self.config: Config = loaded(self.file)

    def set_key(self, level: str) -> None:
        with opened(self.config.store.url) as store:
            put_keys(store, (key("A", "x", level),))

    def put_rule(self) -> None:
        with closing(RuleStore(self.config.store.url, engine="default", patience_seconds=30)) as store:
            store.change(lambda standing: RuleChange(put=(FEW,)), changed_by="a")

    def until(self, holds: Callable[[Snapshot], bool]) -> Snapshot:
        return soon(self.config, holds)

    def details_age(self) -> float | None:
        return age(publication(self.config).moments.details_at)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, state(), 0.5)
    yield made
    made.server.close()


@pytest.fixture
def searching(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, SEARCHED, 0.1)
    yield made
    made.server.close()


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
        assert (found.networks, found.vnic_profiles) == (state().networks, state().vnic_profiles)
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
        assert len(first.vms) == VMS
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
