"""Where commands that change something run: an engine, a store, and a folder for files."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_placement.store import backup
from ovirt_placement.store.sql.database import Database, StoreLost, StoreUnmade
from tests.placement.cli.live_engine import LiveEngine


@dataclass
class Stage:
    """An engine, a store, and a folder for files."""

    live: LiveEngine
    folder: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.folder}/store.db"

    def run(self, *words: str) -> tuple[int, str, str]:
        command, *arguments = words
        if command == "ovirt-placement":
            return self.live.outcome(*arguments)
        self.live.capsys.readouterr()
        status = enforcer([*arguments, "--config", str(self.live.config)])
        printed = self.live.capsys.readouterr()
        return status, printed.out, printed.err

    def prepared(self, *words: str) -> str:
        status, out, err = self.run(*words)
        assert status in (0, 3), out + err
        return out

    def file(self, name: str, content: str) -> str:
        path = self.folder / name
        path.write_text(content)
        return str(path)

    def store(self) -> object:
        """All that the store holds; None where there is none."""
        database = Database(self.url, patience_seconds=5, create=False)
        copy = self.folder / "copy"
        copy.unlink(missing_ok=True)
        try:
            backup.write(database, copy)
        except (StoreUnmade, StoreLost):
            return None
        finally:
            database.close()
        return json.loads(copy.read_text())
