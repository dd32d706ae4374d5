"""What is wrong with a store is said with the command that helps: carried out as it stands there, it does."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.placement.cli.live_engine import Starting
from tests.placement.cli.test_changing_commands import ENFORCER, STATE
from tests.root.conftest import GROUP, OWNER, Root, close_to_others, commands_of_root

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("root")]

_COMMAND = re.compile(
    r"(ovirt-placement store restore BACKUP --replace|ovirt-placement store restore BACKUP"
    r"|ovirt-placement store init|chown -h \S+ [^;\n]*|chmod u\+rw [^;\n]*|mount -o remount,rw \S+|df -h \S+)"
)
_KIB = 1024


class Scene(NamedTuple):
    """A store of services that are not root, in a file system of its own, and root's commands there."""

    root: Root
    store: Path
    backup: Path
    config: tuple[str, ...]

    def inside(self, *words: str) -> None:
        """Run a command where that file system is mounted."""
        subprocess.run(["nsenter", "-t", str(self.root.process.pid), "-m", "--", *words], check=True)

    @property
    def file(self) -> Path:
        """The store as it is seen from without."""
        return Path(f"/proc/{self.root.process.pid}/root{self.store}")

    def said(self) -> dict[str, str]:
        """What commands print that need the store, by the command."""
        found = {}
        for words in (
            ("ovirt-enforcer", "pause"),
            ("ovirt-placement", "doctor"),
            ("ovirt-placement", "status"),
        ):
            self.root.run(*words, *self.config)
            found[words[1]] = self.root.said
        return found

    def carry_out(self, command: str) -> None:
        words = shlex.split(command.rstrip(".").replace("BACKUP", str(self.backup)))
        if words[0] == "ovirt-placement":
            assert self.root.run(*words, *self.config) == 0, self.root.said
        else:
            self.inside(*words)

    def assert_works(self) -> None:
        assert self.root.run("ovirt-enforcer", "pause", *self.config) == 0, self.root.said
        assert self.root.run("ovirt-enforcer", "pause", "--list", *self.config) == 0
        assert "all clusters" in self.root.said


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-m", "true"]).returncode:
        pytest.skip("no file system can be mounted here: none can be full or read-only")
    with commands_of_root(tmp_path_factory.mktemp("root"), "unshare", "-m") as found:
        yield found


@pytest.fixture
def scene(apart: Root, starting: Starting, tmp_path: Path) -> Iterator[Scene]:
    services = tmp_path / "services"
    services.mkdir()
    with starting(STATE, more=ENFORCER) as live:
        live.config.write_text(live.config.read_text().replace(f"{tmp_path}", f"{services}"))
        close_to_others(live, services)
        config = ("--config", str(live.config))
        found = Scene(apart, services / "store.db", tmp_path / "backup", config)
        found.inside(
            "mount", "-t", "tmpfs", "-o", f"size=4m,mode=770,uid={OWNER},gid={GROUP}", "x", str(services)
        )
        # The configuration names a password in that folder.
        shutil.copy2(services / "password", found.file.with_name("password"))
        found.assert_works()
        assert apart.run("ovirt-placement", "store", "backup", str(found.backup), *config) == 0, apart.said
        yield found
        found.inside("umount", "-l", str(services))


def damage(scene: Scene) -> None:
    scene.file.write_bytes(b"no store" * _KIB)


def damage_within(scene: Scene) -> None:
    """The first page, and with it the version, is as it was."""
    size = scene.file.stat().st_size
    with scene.file.open("r+b") as file:
        file.seek(2 * 4096)
        file.write(b"\xff" * (size - 2 * 4096))


def empty(scene: Scene) -> None:
    scene.file.write_bytes(b"")


def take_away(scene: Scene) -> None:
    scene.file.unlink()


def execute(scene: Scene, statement: str) -> None:
    """SQLite finds the files of a store by its path, and so only from within."""
    program = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute(sys.argv[2]); c.commit()"
    scene.inside(sys.executable, "-c", program, str(scene.store), statement)
    give_back(scene)


@contextmanager
def reading(scene: Scene) -> Iterator[None]:
    """Somebody reads the store all the time: the files that SQLite makes for readers are there."""
    program = (
        "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
        " print(c.execute('SELECT count(*) FROM leases').fetchone(), flush=True); input()"
    )
    words = ["nsenter", "-t", str(scene.root.process.pid), "-m", "--"]
    with subprocess.Popen(
        [*words, sys.executable, "-c", program, str(scene.store)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout.readline()
        give_back(scene)
        yield
        process.communicate("\n")


def upgrade(scene: Scene) -> None:
    execute(scene, "UPDATE schema_version SET version = 99")


def give_back(scene: Scene) -> None:
    for file in scene.file.parent.glob("store.db*"):
        os.chown(file, OWNER, GROUP)


def own(scene: Scene) -> None:
    for file in scene.file.parent.glob("store.db*"):
        os.chown(file, 0, 0)
        file.chmod(0o600)


def close_file(scene: Scene) -> None:
    scene.file.chmod(0o440)


def mount_read_only(scene: Scene) -> None:
    scene.inside("mount", "-o", "remount,ro", str(scene.store.parent))


def fill(scene: Scene) -> None:
    execute(scene, "PRAGMA wal_checkpoint(TRUNCATE)")  # what is there would do for some changes
    scene.inside("sh", "-c", f"cat /dev/zero > {scene.store.parent}/filler 2> /dev/null || true")


RESTORE, REPLACE, INIT = (
    f"ovirt-placement store {words}" for words in ("restore BACKUP", "restore BACKUP --replace", "init")
)
LOST = (damage, damage_within, empty, take_away)


@pytest.mark.parametrize(
    ("fault", "command"),
    [
        *((fault, command) for fault in LOST for command in (RESTORE, INIT)),
        *((fault, RESTORE + " --replace") for fault in LOST),
        (upgrade, REPLACE),
        (own, "chown"),
        (close_file, "chmod"),
        (mount_read_only, "mount"),
    ],
)
def test_what_is_said_helps(fault: Callable[[Scene], None], command: str, scene: Scene) -> None:
    fault(scene)
    helping: list[str] = []
    for name, said in scene.said().items():
        commands = _COMMAND.findall(said)
        # Each lost store is also restored with --replace, which is said of one that is of a later release.
        meant = [one for one in commands if one.startswith(command.removesuffix(" --replace"))]
        assert meant or (fault, name) == (close_file, "status"), (name, said)  # which reads, and may
        helping = meant or helping
        assert "Traceback" not in said
    scene.carry_out(command if command.startswith("ovirt") else helping[0])
    scene.assert_works()
    aside = list(scene.file.parent.glob("store.db.2*Z"))
    assert len(aside) == (fault in (damage, damage_within, empty, upgrade))


@pytest.fixture
def enforcer() -> Iterator[int]:
    """A process that looks like an enforcer that led until lately."""
    words = [sys.executable, "-c", "input()", "ovirt-enforcer"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, text=True) as process:
        yield process.pid
        process.communicate("\n")


@pytest.mark.parametrize("readers_find_room", [True, False])
def test_where_the_disk_is_full_is_said_and_once_there_is_room_the_store_works(
    scene: Scene, enforcer: int, readers_find_room: bool
) -> None:
    led = f"'default', '{socket.gethostname()}-{enforcer}-0a1b2c3d', 1, 0.0, 15.0"
    execute(scene, f"INSERT INTO leases (engine, owner, epoch, expires, seconds) VALUES ({led})")
    with reading(scene) if readers_find_room else nullcontext():
        fill(scene)
        said = scene.said()["status"]
        assert f"process {enforcer} runs and cannot write the store" in said
        assert ("nothing else is known" in said) is not readers_find_room
        for name, words in scene.said().items():
            (command,) = set(_COMMAND.findall(words)) or {""}
            assert command, (name, words)
            assert "no room is left on its file system" in words, name
            assert "no enforcer runs" not in words
            scene.carry_out(command)
    scene.file.with_name("filler").unlink()
    scene.assert_works()
