"""The service has the engine answer the searches of placement rules, and publishes who is found."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ovirt_placement.model import MemberSearch, Snapshot
from ovirt_placement.rules.placement_rules.members import resolved_rules
from ovirt_placement.store.placement_rules import RuleChange, RuleStore
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.core.settings import PROMPT
from ovirt_simulator.http.control import Disturbance
from ovirt_simulator.http.server import Server, serve
from tests.builders import host, rule, snapshot, vm
from tests.configuration import write_configuration
from tests.placement.inventory.published.key_store import published, soon
from tests.placement.inventory.running import ended, loaded, running

FEW = rule("few", "at_most_per_host", "search:name=db*", most=1)
STATE = snapshot(host("h1"), host("h2"), vm("db1", "h1"), vm("web1", "h2"))


class Stage:
    def __init__(self, folder: Path) -> None:
        self.engine = Engine.from_snapshot(STATE, clock=datetime(2026, 1, 1, tzinfo=UTC), settings=PROMPT)
        self.server: Server = serve(self.engine)
        self.file = write_configuration(folder, self.server.api_url, inventory="interval_seconds = 0.1\n")
        self.config = loaded(self.file)
        self.store = RuleStore(self.config.store.url, engine="default", patience_seconds=30)

    def put(self) -> None:
        self.store.change(lambda standing: RuleChange(put=(FEW,)), changed_by="a")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path)
    yield made
    made.store.close()
    made.server.close()


def members(found: Snapshot) -> tuple[str, ...]:
    return tuple(vm for one in resolved_rules(found) for vm in one.vms)


@pytest.mark.system
def test_a_rule_that_comes_has_its_members_and_gets_others_as_vms_change(stage: Stage) -> None:
    with running(stage.file) as service:
        assert published(stage.config).member_searches == ()
        stage.put()
        found = soon(stage.config, lambda found: members(found) == ("db1",))
        assert found.member_searches == (MemberSearch(of="vms", text="name=db*", found=("db1",)),)
        stage.engine.vms.edit("web1", name="db2")
        soon(stage.config, lambda found: members(found) == ("db1", "web1"))
        stage.server.disturbances.add(Disturbance(path="search=name", status=500, times=None))
        stage.engine.vms.edit("db1", name="other")
        found = soon(stage.config, lambda found: bool(found.member_searches[0].problem))
        assert members(found) == ("db1", "web1")
        stage.server.disturbances.clear()
        stage.engine.vms.edit("db1", description="changed")
        soon(stage.config, lambda found: members(found) == ("web1",))
        ended(service)


def test_it_begins_with_who_is_found(stage: Stage) -> None:
    stage.put()
    with running(stage.file) as service:
        assert members(published(stage.config)) == ("db1",)
        ended(service)
