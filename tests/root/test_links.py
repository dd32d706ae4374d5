"""A member of the services' group has put links where root's commands write: nothing comes of them."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.placement.cli.live_engine import LiveEngine, Starting
from tests.placement.cli.test_changing_commands import ENFORCER, STATE
from tests.root.conftest import GROUP, MEMBER, Root, close_to_others

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("root")]

#: Where root's commands wrote, or may come to write.
PLACES = (
    ("store.db",),
    ("store.db.made",),
    ("store.db-wal", "store.db-shm", "store.db-journal"),
    ("run/socket", "run/lock", "run/snapshot", "run/snapshot.new", "run/names", "run/expected"),
    ("of-root.backup",),
)
COMMANDS = (
    ("ovirt-enforcer", "pause"),
    ("ovirt-enforcer", "resume"),
    ("ovirt-placement", "keys", "set", "rack", "1", "2", "--on", "vm", "web1"),
    ("ovirt-placement", "doctor"),
    ("ovirt-placement", "store", "init"),
    ("ovirt-placement", "store", "restore", "{backup}", "--replace"),
    ("ovirt-placement", "store", "backup", "{services}/of-root.backup"),
    ("ovirt-placement", "inventory", "run"),
)


class Scene(NamedTuple):
    live: LiveEngine
    services: Path
    #: A folder that root alone may enter: what is to come there is root's.
    victim: Path


@pytest.fixture
def scene(starting: Starting, tmp_path: Path) -> Iterator[Scene]:
    services, victim = tmp_path / "services", tmp_path / "victim"
    for folder in (services, services / "run", victim):
        folder.mkdir()
    victim.chmod(0o700)
    (victim / "shadow").write_text("root's")
    (victim / "shadow").chmod(0o600)
    with starting(STATE, more=ENFORCER) as live:
        live.config.write_text(live.config.read_text().replace(f"{tmp_path}", f"{services}"))
        close_to_others(live, services)
        yield Scene(live, services, victim)


def link_to_what_is_not_there(scene: Scene, place: Path) -> None:
    place.symlink_to(scene.victim / "ld.so.preload")
    os.lchown(place, MEMBER, MEMBER)


def link_to_what_is_roots(scene: Scene, place: Path) -> None:
    place.symlink_to(scene.victim / "shadow")
    os.lchown(place, MEMBER, MEMBER)


def hard_link(scene: Scene, place: Path) -> None:
    os.link(scene.victim / "shadow", place)


def fifo(scene: Scene, place: Path) -> None:
    """Who opens it waits for the other end, which never comes."""
    os.mkfifo(place, 0o666)
    os.chown(place, MEMBER, GROUP)


@pytest.mark.parametrize("places", PLACES, ids=[places[0] for places in PLACES])
@pytest.mark.parametrize("plant", [link_to_what_is_not_there, link_to_what_is_roots, hard_link, fifo])
def test_nothing_comes_of_a_link(
    places: tuple[str, ...], plant: Callable[[Scene, Path], None], scene: Scene, root: Root
) -> None:
    config = ("--config", str(scene.live.config))
    backup = scene.victim.parent / "backup"
    assert root.run("ovirt-enforcer", "pause", *config) == 0, root.said
    assert root.run("ovirt-placement", "store", "backup", str(backup), *config) == 0, root.said
    before = content(scene.victim)
    for command in COMMANDS:
        for planted in (scene.services / place for place in places):
            planted.unlink(missing_ok=True)
            plant(scene, planted)
        words = (word.format(backup=backup, services=scene.services) for word in command)
        root.run(*words, *config)
        assert content(scene.victim) == before, (command, root.said)


def content(folder: Path) -> dict[str, tuple[bytes, int, int, int]]:
    found = {}
    for file in folder.iterdir():
        status = file.lstat()
        found[file.name] = file.read_bytes(), status.st_uid, status.st_gid, status.st_mode
    return found
