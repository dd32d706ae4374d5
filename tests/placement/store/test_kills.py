"""Commands that are killed amid their writing: nothing half, nothing twice, and once more does it."""

import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
import sqlalchemy

from ovirt_placement.store.orders import ApprovalStore, ApprovedMove
from tests.placement.cli.conftest import proxy, serving, starting
from tests.placement.cli.live_engine import PASSWORD, Starting
from tests.placement.cli.test_changing_commands import ENFORCER, RULE, STATE
from tests.placement.databases import database
from tests.root.conftest import Root, commands_of_root

__all__ = ["proxy", "serving", "starting"]

pytestmark = pytest.mark.system

#: Of each command in the nightly suite: 300 of the five.
_MANY, _FEW = 60, 4
#: So long a commit takes, at the most.
_COMMIT_SECONDS = 0.004
_KILLED = -signal.SIGKILL, -signal.SIGALRM

COMMANDS: dict[str, tuple[str, ...]] = {
    "approve": ("ovirt-enforcer", "approve", "p1"),
    "pause": ("ovirt-enforcer", "pause", "--reason", "again"),
    "keys set": ("ovirt-placement", "keys", "set", "rack", "1", "2", "--on", "vm", "web1"),
    "rules add": ("ovirt-placement", "rules", "add", *RULE),
    "store restore": ("ovirt-placement", "store", "restore", "{backup}", "--replace"),
}
#: All rows by table; None where there is no store.
Held = Counter[tuple[str, str]] | None


class Bench(NamedTuple):
    """A store that can be brought back to what it was, and commands on it."""

    commands: Root
    config: Path
    backup: Path
    #: Makes the store as it was, and gives its URL.
    reset: Callable[[], str]

    def run(self, words: tuple[str, ...], kill: tuple[int, float] | None = None) -> int:
        given = (word.format(backup=self.backup) for word in words)
        environment = {"OVIRT_PASSWORD": PASSWORD, "STATE_DIRECTORY": str(self.backup.parent)}
        return self.commands.run(*given, "--config", str(self.config), kill=kill, **environment)

    def begin(self) -> str:
        """Have the store as it was, and name it in the configuration."""
        url = self.reset()
        head, _, _ = self.config.read_text().partition("[store]")
        self.config.write_text(f'{head}[store]\nurl = "{url}"\n{ENFORCER}')
        return url


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Root]:
    with commands_of_root(tmp_path_factory.mktemp("killed")) as found:
        yield found


def held(url: str) -> Held:
    """All that a database holds, as it says itself."""
    if not Path(url.removeprefix("sqlite:///")).exists():
        return None
    with database(url) as connection:
        tables = sqlalchemy.inspect(connection).get_table_names()
        return Counter(
            (table, repr(tuple(row)))
            for table in tables
            for row in connection.exec_driver_sql(f'SELECT * FROM "{table}"')
        )


def changed(before: Held, after: Held) -> Counter[tuple[str, str]]:
    """How many rows came and went, by table."""
    assert before is not None
    assert after is not None
    came = Counter(("came", table) for table, _ in (after - before).elements())
    went = Counter(("went", table) for table, _ in (before - after).elements())
    return came + went


def prepare(bench: Bench, url: str) -> None:
    """A store with a pause, a key, a plan that waits, and a backup of it that lacks what came later."""
    assert bench.run(("ovirt-enforcer", "pause")) == 0, bench.commands.said
    assert bench.run(("ovirt-placement", "store", "backup", "{backup}")) == 0, bench.commands.said
    assert bench.run(("ovirt-placement", "keys", "set", "rack", "3", "4", "--on", "vm", "web2")) == 0
    with closing(ApprovalStore(url, engine="default", patience_seconds=5)) as store:
        store.offer("c1", "p1", (ApprovedMove(("v1",), ("h1",), "h2"),), "Cluster blue: 1 migration.")


@pytest.fixture
def bench(commands: Root, tmp_path: Path, starting: Starting) -> Iterator[Bench]:
    kept, used = tmp_path / "kept", tmp_path / "used"

    def reset() -> str:
        for file in used.glob("*"):
            file.unlink()
        shutil.copytree(kept, used, dirs_exist_ok=True)
        return f"sqlite:///{used}/store.db"

    kept.mkdir()
    with starting(STATE, more=ENFORCER) as live:
        found = Bench(commands, live.config, tmp_path / "backup", lambda: f"sqlite:///{kept}/store.db")
        prepare(found, found.begin())
        yield found._replace(reset=reset)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kills", [_FEW, pytest.param(_MANY, marks=pytest.mark.nightly)])
def test_nothing_is_half_and_nothing_twice(kills: int, command: str, bench: Bench) -> None:
    """On SQLite; a server ends a transaction by itself."""
    words, chance = COMMANDS[command], random.Random(command)
    url = bench.begin()
    before = held(url)
    assert bench.run(words) == 0, bench.commands.said
    whole = changed(before, held(url))
    assert whole
    #: How many statements write, once that is known; then kills come at any time after one of them.
    statements, outcomes = 0, Counter[str]()
    for number in count(1):
        if outcomes.total() == kills:
            break
        soon = chance.uniform(0, _COMMIT_SECONDS)
        at = (chance.randint(1, statements), soon) if statements else (number, 0.0)
        url = bench.begin()
        before = held(url)
        status = bench.run(words, kill=at)
        if status == 0:
            statements = statements or number - 1
            continue
        assert status in _KILLED, bench.commands.said
        found = changed(before, held(url))
        assert found in (Counter(), whole), f"killed at {at}"
        outcomes["all" if found else "nothing"] += 1
        if not found:
            assert bench.run(words) == 0, bench.commands.said
            assert changed(before, held(url)) == whole
    print(f"{command}: {dict(outcomes)}, {statements} statements")


@pytest.mark.parametrize("kills", [_FEW, pytest.param(_MANY, marks=pytest.mark.nightly)])
def test_a_damaged_store_is_brought_back_whole_or_not_at_all(kills: int, bench: Bench) -> None:
    words = COMMANDS["store restore"]
    url = bench.begin()
    file = Path(url.removeprefix("sqlite:///"))
    assert bench.run(words) == 0
    wanted = tables(held(url))
    for kill in range(1, kills + 1):
        bench.begin()
        file.write_bytes(b"damaged" * 1_000)
        status = bench.run(words, kill=(kill, 0.0))
        if status != 0:
            assert status in _KILLED
            assert not file.exists() or file.read_bytes().startswith(b"damaged")
            assert bench.run(("ovirt-enforcer", "pause")) == 2
            assert "store restore" in bench.commands.said
            assert bench.run(words) == 0, bench.commands.said
        assert tables(held(url)) == wanted


def tables(found: Held) -> Counter[str]:
    assert found is not None
    return Counter(table for table, _ in found.elements())
