"""Back to the version before: what it says of a newer store, and that a backup of its own brings all back."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ovirt_placement.cli.main import main
from ovirt_placement.model import PlacementKey
from ovirt_placement.store.keys import KeyStore
from ovirt_placement.store.sql.versions import VERSION
from tests.configuration import write_configuration
from tests.docs.recipes.page import blocks
from tests.stored import put_keys

TITLE = "Back to the version before"
KEY = PlacementKey(level="cluster", resource="c1", key_class="be", name="A", value=1.0, weight=1.0)

#: A release that comes after this one: its store has one version more.
NEXT = """
import sys
from ovirt_placement.store.sql import database, versions
versions.MIGRATIONS += (lambda connection: None,)
versions.VERSION = database.VERSION = 1 + len(versions.MIGRATIONS)
from ovirt_placement.store import backup
backup.VERSION = versions.VERSION
from ovirt_placement.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STATE_DIRECTORY", str(tmp_path))
    made = write_configuration(tmp_path, "http://127.0.0.1:1/ovirt-engine/api")
    monkeypatch.setenv("OVIRT_PLACEMENT_CONFIG", str(made))
    return made


def of_the_next_release(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", NEXT, *arguments], capture_output=True, text=True, check=False
    )


def shown() -> list[list[str]]:
    """The commands of the page, those for the store; as root, at their places."""
    lines = [line for block in blocks(TITLE, "console") for line in block.splitlines()]
    return [line.split()[1:] for line in lines if line.startswith("# ovirt-placement store")]


@pytest.mark.system
def test_the_way_there_and_back(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    keys = KeyStore(url, engine="default", patience_seconds=5)
    put_keys(keys, [KEY])
    keys.close()
    back_up, restore = shown()
    backup = tmp_path / Path(back_up[-1]).name
    assert main([*back_up[1:-1], str(backup)]) == 0

    # The next release takes over, and this one leaves its store alone.
    assert of_the_next_release("store", "init").returncode == 0
    capsys.readouterr()
    assert main(["store", "backup", str(tmp_path / "late.backup")]) == 2
    (line,) = blocks(TITLE)
    said = line.strip().replace("/var/lib/ovirt-placement", str(tmp_path))
    numbers = {"version 2": f"version {VERSION + 1}", "knows 1:": f"knows {VERSION}:"}
    for shown_number, number in numbers.items():
        said = said.replace(shown_number, number)
    assert capsys.readouterr().err.strip() == said

    # Its backups are for it alone.
    assert of_the_next_release("store", "backup", str(tmp_path / "next.backup")).returncode == 0
    assert main(["store", "restore", str(tmp_path / "next.backup"), "--replace"]) == 2
    assert re.search(
        rf"schema version {VERSION + 1}, and this release has {VERSION}", capsys.readouterr().err
    )

    # Back: the store is put aside with all that belongs to it, and what was in the backup is there again.
    (tmp_path / "store.db-wal").write_bytes(b"of a service that was killed")
    assert restore[1:] == ["store", "restore", back_up[-1], "--replace"]
    assert main(["store", "restore", str(backup), "--replace"]) == 0
    assert len(list(tmp_path.glob("store.db.2*Z"))) == 1
    again = KeyStore(url, engine="default", patience_seconds=5)
    assert [found.key for found in again.all_keys()] == [KEY]
    again.close()
