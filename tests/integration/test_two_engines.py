"""Two engines, each with processes of its own, and one store: the ids are the same, and nothing is mixed."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import pytest

from ovirt_placement.cli.main import main
from ovirt_placement.config import Config, load
from ovirt_placement.inventory import client as inventory
from ovirt_placement.model import AffinityRule, Snapshot
from ovirt_placement.store.enforcer.intents import IntentState, Store
from ovirt_placement.store.keys import KeyStore
from tests import builders as build
from tests.integration.world import World, running
from tests.placement.databases import postgresql
from tests.stored import prepared

pytestmark = pytest.mark.system

EAST, WEST = "east", "west"
PAIR = ("first", "second")

ENFORCING = '[enforcer]\nmode = "enforce"\ninterval_seconds = 1\npoll_seconds = 0.2\n'


def state(rule: AffinityRule, second: str) -> Snapshot:
    """One VM on the first host, its peer on that or another, and a rule that this breaks."""
    return build.snapshot(
        *(build.host(host) for host in ("h1", "h2")), build.vm("first", "h1"), build.vm("second", second),
        build.vm("idle"), build.group("pair", rule, "first second"),
    )  # fmt: skip


class Site(NamedTuple):
    """An engine with what is ours besides it."""

    name: str
    world: World
    config: Config
    intents: Store
    keys: KeyStore

    def set_key(self, name: str, *where: str) -> None:
        """Set a key as a person does; every VM of the cluster that starts from now on freezes it."""
        config = ["--config", str(self.world.config)]
        command = ["keys", "set", name, "1", "5", "--as", "billing-entity", "--on", *where]
        assert main([*command, *config]) == 0

    def snapshot(self) -> Snapshot:
        return inventory.snapshot(config=self.config, max_age=0, deadline=30)

    def key_names(self) -> list[str]:
        return [key.name for key in self.snapshot().placement_keys]

    def frozen(self) -> dict[str, list[str]]:
        return {run.vm: [name for name, _ in run.keys] for run in self.keys.records().frozen_keys}

    def until_frozen(self, *vms: str, name: str) -> None:
        """Wait until these VMs, and no others, are remembered to have started with this key."""
        wanted = {vm: [name] for vm in vms}
        self.world.until(lambda: self.frozen() == wanted, f"the records of {vms}")

    def until_repaired(self) -> None:
        """Wait until the pair stands as it should, and all that was begun has ended."""
        hosts = {EAST: 2, WEST: 1}[self.name]

        def repaired() -> bool:
            if any(self.world.status(vm) != "up" for vm in PAIR) or self.intents.open_intents():
                return False
            return len({self.world.host_of(vm) for vm in PAIR}) == hosts

        self.world.until(repaired, f"the {self.name} to be repaired")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.nightly)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/store.db"
        return
    with postgresql() as url:
        yield url


@pytest.fixture
def sites(store_url: str, tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    """In the east the pair is to part, in the west to come together; both have an inventory."""
    states = {EAST: state(build.APART, "h1"), WEST: state(build.TOGETHER, "h2")}
    with ExitStack() as opened:
        found = []
        for name, begun in states.items():
            folder = tmp_path / name
            folder.mkdir()
            name_line = f'name = "{name}"'
            world = opened.enter_context(
                running(folder, begun, engine=name_line, store_url=store_url, more=ENFORCING, proxy=False)
            )
            world.publish()
            intents = Store(store_url, engine=name, patience_seconds=30)
            keys = KeyStore(store_url, engine=name, patience_seconds=30)
            opened.enter_context(closing(intents))
            opened.enter_context(closing(keys))
            found.append(Site(name, world, load(world.config, {}), intents, keys))
        east, west = found
        yield east, west


def test_an_intent_of_one_engine_is_nothing_to_the_other(sites: tuple[Site, Site]) -> None:
    """Neither is it laid over the other's snapshot, nor does it hold up or occupy the other's enforcer."""
    east, west = sites
    for vm in PAIR:
        intent = prepared(
            east.intents, vm=vm, cluster=build.CLUSTER, source="h1", target="h2", correlation_id=f"east-{vm}"
        )
        east.intents.accept(intent.id)
    assert {pending.vm for pending in east.snapshot().pending} == set(PAIR)
    assert west.snapshot().pending == ()
    west.world.enforce()
    west.until_repaired()
    assert [intent.state for intent in east.intents.open_intents()] == [IntentState.ACCEPTED] * 2


def test_keys_and_repairs_of_one_engine_are_not_those_of_the_other(sites: tuple[Site, Site]) -> None:
    east, west = sites
    east.set_key("ofEast", "cluster", build.CLUSTER)
    assert (east.key_names(), west.key_names()) == (["ofEast"], [])
    west.set_key("ofWest", "cluster", build.CLUSTER)
    assert (east.key_names(), west.key_names()) == (["ofEast"], ["ofWest"])
    for site in sites:
        site.world.enforce()
    east.until_frozen(*PAIR, name="ofEast")
    west.until_frozen(*PAIR, name="ofWest")
    for site in sites:
        site.until_repaired()
        (done,) = site.intents.history(within_seconds=3600)
        assert done.state is IntentState.DONE
        assert site.world.host_of(done.vm) == done.target
    east.world.stop("first")
    east.until_frozen("second", name="ofEast")
    west.until_frozen(*PAIR, name="ofWest")
    assert [site.world.stop_enforcing() for site in sites] == [0, 0]
