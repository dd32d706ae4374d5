"""The engine's discovery: it comes late, each time with other descriptions, and nobody else waits for it.

The engine disables external units when it starts. It compares with its table what the proxy reports, and
writes what differs; but the table may not show yet that the units are disabled.
"""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..running import RunningProxy, command, running, write_plugins

PLUGIN = '''
class Keep:
    properties_validation = "keep_mode=a|b"
    def do_filter(self, hosts, vm, args):
        """An example."""
        return hosts
    def do_score(self, hosts, vm, args):
        return []
class Mute:
    def do_balance(self, hosts, args):
        return ("", [])
'''
LATE_SECONDS = 1.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_plugins(tmp_path_factory.mktemp("discovery") / "plugins", units=PLUGIN)


@pytest.fixture(scope="module")
def late(folder: Path) -> Iterator[RunningProxy]:
    with running(folder, config=f"[calls]\ndiscovery_seconds = {LATE_SECONDS}\n") as proxy:
        yield proxy


def _enabled_after_start(table: dict[str, tuple[str, bool]], answered: dict[str, dict[str, Any]]) -> set[str]:
    """The units that are enabled once an engine has started whose disabling is committed last of all.

    Its discovery compares with the table as it was, and its writes wait for the other transaction.
    """
    reported = {name: unit[0] for units in answered.values() for name, unit in units.items()}
    written = {name: text for name, text in reported.items() if table.get(name) != (text, True)}
    return set(written)


def test_an_engine_that_commits_late_writes_all_units(folder: Path) -> None:
    with running(folder) as proxy, proxy.client() as client:
        first: Any = client.discover()
        again: Any = client.discover()
    assert first["filters"]["Keep"][0].startswith("An example. [discovered 20")
    assert first["balance"]["Mute"][0].startswith("[discovered 20")
    table = {name: (unit[0], True) for units in first.values() for name, unit in units.items()}
    assert _enabled_after_start(table, again) == {"Keep", "Mute"}
    properties = [
        [unit[1] for units in found.values() for unit in units.values()] for found in (first, again)
    ]
    assert properties[0] == properties[1], "they decide what a policy may set"


@pytest.mark.system
def test_only_the_engine_waits(late: RunningProxy) -> None:
    began = time.monotonic()
    moments: list[float] = []

    def ask() -> None:
        with late.client() as client:
            client.discover()
        moments.append(time.monotonic() - began)

    engine = threading.Thread(target=ask)
    engine.start()
    assert late.discover()["filters"]["Keep"] == ["An example.", "keep_mode=a|b"]
    assert late.filters(["Keep"], ["h1"])["result"] == ["h1"]
    others = time.monotonic() - began
    engine.join()
    assert others < moments[0]
    assert moments[0] >= LATE_SECONDS


def test_the_metrics_say_when_the_engine_was_answered(folder: Path) -> None:
    def answered(proxy: RunningProxy) -> float:
        return proxy.metrics()["last_discovery_timestamp_seconds",]

    with running(folder) as proxy:
        proxy.discover()
        assert answered(proxy) == 0, "this was an administrator"
        before = time.time()
        with proxy.client() as client:
            client.discover()
        assert before - 0.001 <= answered(proxy) <= time.time() + 0.001


@pytest.mark.parametrize("seconds", ["-1", "61", "nan"])
def test_more_than_the_engine_waits_is_refused(folder: Path, tmp_path: Path, seconds: str) -> None:
    (tmp_path / "c.toml").write_text(f"[calls]\ndiscovery_seconds = {seconds}\n")
    done = command("run", "--config", str(tmp_path / "c.toml"), "--plugins", str(folder))
    assert done.returncode == 2
    assert "calls.discovery_seconds: expected a number" in done.stderr
