"""A process that runs commands as root, traced or not, and the folder of services that are not root."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.paths import CHECKOUT
from tests.placement.cli.conftest import proxy, serving, starting
from tests.placement.cli.live_engine import PASSWORD, LiveEngine
from tests.root.traced import OPTIONS, TRACED, Call, calls_of_root

__all__ = ["proxy", "serving", "starting"]

#: The services' user and group, as it were, and a member of that group.
OWNER, GROUP, MEMBER = 12_345, 12_346, 12_347
SERVICES = {
    ("ovirt-placement", "inventory", "run"),
    ("ovirt-enforcer", "run"),
    ("ovirt-placement-web", "run"),
    ("ovirt-scheduler-proxy", "run"),
}


@dataclass
class Root:
    """Runs commands as root."""

    process: subprocess.Popen[str]
    folder: Path
    #: The last one's process, and what it said.
    child: int = 0
    said: str = ""

    def run(self, *words: str, kill: tuple[int, float] | None = None, **environment: str) -> int:
        asked = {
            "words": words,
            "environment": environment,
            "service": any(words[: len(one)] == one for one in SERVICES),
            "log": str(self.folder / "complaints"),
            "kill": kill,
        }
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        self.child, status, self.said = json.loads(self.process.stdout.readline())
        return int(status)

    def calls(self) -> list[Call]:
        """What the last command did by root's rights."""
        return list(calls_of_root(self.folder / "trace", self.child))


@contextmanager
def commands_of_root(folder: Path, *before: str) -> Iterator[Root]:
    process = subprocess.Popen(
        [*before, sys.executable, "-m", "tests.root.driver"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=CHECKOUT,
        env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "HOME": "/root"},
    )
    try:
        process.stdout.readline()  # it has loaded everything
        yield Root(process, folder)
    finally:
        if process.stdin is not None and not process.stdin.closed:
            process.stdin.close()
        process.wait(60)


@pytest.fixture(scope="module", autouse=True)
def only_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root has rights to give up: run as root to see whether it does")


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """A folder of root's that others may enter: the services' user works in it."""
    with TemporaryDirectory(prefix="root-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    with commands_of_root(tmp_path_factory.mktemp("root")) as found:
        yield found


@pytest.fixture(scope="module")
def traced_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    if shutil.which("strace") is None:
        pytest.skip("no strace is installed: what root does by its rights cannot be seen")
    folder = tmp_path_factory.mktemp("traced")
    with commands_of_root(folder, "strace", "-o", str(folder / "trace"), *OPTIONS, TRACED) as found:
        yield found


def close_to_others(live: LiveEngine, folder: Path) -> None:
    """Configuration and password are root's, and the folder is the services', whose group may write there."""
    password = folder / "password"
    password.write_text(PASSWORD)
    text = live.config.read_text()
    live.config.write_text(text.replace("[inventory]", f'password_file = "{password}"\n[inventory]'))
    for file in (live.config, password):
        file.chmod(0o600)
    give(folder)


def give(folder: Path, files: Sequence[str] = ("store.db*", "run", "run/*")) -> None:
    os.chown(folder, OWNER, GROUP)
    folder.chmod(0o770)
    for pattern in files:
        for file in folder.glob(pattern):
            os.lchown(file, OWNER, GROUP)
            if not file.is_symlink():
                file.chmod(0o770 if file.is_dir() else 0o660)
