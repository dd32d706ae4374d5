"""A VM changes its cluster, by the SDK, with real processes: its memberships are reported."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ovirt_placement.cli.main import main
from ovirt_placement.store.enforcer.observations import MembershipStore
from tests import builders as build
from tests.builders import SOFT_TOGETHER
from tests.integration.world import World, running
from tests.placement.cli.documents import parsed
from tests.processes import completed

#: A dry run, which is the default.
OFTEN = "[enforcer]\ninterval_seconds = 0.2\n"
STATE = build.snapshot(
    build.cluster("c1", name="blue"),
    build.cluster("c2", name="red"),
    build.host("h1", cluster="c1"),
    build.host("h2", cluster="c2"),
    *(build.vm(name, cluster="c1") for name in ("web", "db", "peer")),
    build.group("near", SOFT_TOGETHER, "web db peer", cluster="c1"),
    build.group("tied", SOFT_TOGETHER, "peer", cluster="c1", vm_labels=("ours",)),
    build.label("ours", "web"),
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with running(tmp_path, STATE, more=OFTEN, proxy=False) as opened:
        yield opened


def groups(world: World, *arguments: str) -> str:
    words = ["groups", *arguments, "--config", str(world.config)]
    done = completed(main, words, world.folder / "command.log", os.environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def lost(world: World) -> dict[str, tuple[list[str], list[str]]]:
    """The names of groups and labels that each VM lost."""
    found: list[dict[str, Any]] = parsed(groups(world, "lost", "--json"))["losses"]
    assert {one["cluster"]["name"] for one in found} <= {"blue"}
    return {one["vm"]["name"]: (names(one["groups"]), names(one["labels"])) for one in found}


def names(found: list[dict[str, str]]) -> list[str]:
    return [each["name"] for each in found]


def remembered(world: World) -> int:
    """How many VMs the enforcer has written down."""
    store = MembershipStore(world.store_url, engine="default", patience_seconds=30)
    try:
        return len(store.seen())
    finally:
        store.close()


@pytest.mark.system
@pytest.mark.parametrize("published", [False, True])
def test_it_is_listed_logged_and_reported_once_over_restarts(world: World, published: bool) -> None:
    assert groups(world, "lost") == "Nothing is lost.\n"
    if published:
        world.publish()
    assert "(mode observe)" in world.enforce()
    world.until(lambda: remembered(world) == 3, "the memberships")
    world.change_cluster("web", "c2")
    world.until_reported(9802, "VM web left cluster blue", "groups near, tied and affinity label ours")
    assert lost(world) == {"web": (["near", "tied"], ["ours"])}
    assert world.enforcer_log.count("VM web left cluster blue") == 1
    world.kill_enforcer()
    world.change_cluster("db", "c2")
    world.enforce()
    world.until_reported(9802, "VM db left cluster blue", "group near;")
    assert lost(world) == {"web": (["near", "tied"], ["ours"]), "db": (["near"], [])}
    assert world.stop_enforcing() == 0
    assert len(world.events(9802)) == 2
    assert world.enforcer_log.count("left cluster") == 1, "the log begins with the process"
    shown = groups(world, "lost").splitlines()
    assert shown[0].split() == ["VM", "former", "cluster", "groups", "labels", "since"]
    assert groups(world, "lost", "--forget", "web").count("web") == 0
    assert lost(world) == {"db": (["near"], [])}


def test_who_is_no_loser_cannot_be_forgotten(world: World) -> None:
    words = ["groups", "lost", "--forget", "web", "--config", str(world.config)]
    done = completed(main, words, world.folder / "command.log", os.environ)
    assert (done.returncode, done.stderr) == (2, 'ovirt-placement: no VM that lost a membership "web"\n')
