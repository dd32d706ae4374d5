"""The log holds what happened and nothing that a caller made up, and waits for no reader."""

import os
import signal
import subprocess
import xmlrpc.client
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from ..running import COMMAND, RunningProxy, eventually, serving, units, write_plugins

PLUGINS = "class Unknown(Exception):\n    awaits = False\n" + units(
    Loud="print('x' * 30_000)\nreturn hosts",
    Forging=r"raise RuntimeError('no\n2026-01-01 00:00:00,000 ERROR forged\r\x1b[31m')",
    Knows="raise Unknown(f'there is no {vm}')",
    Errs="raise RuntimeError(vm)",
)

IMPORTED = r"""
import os, sys
os.write(2, b"\xff\x1b[31m\n2026-01-01 00:00:00,000 ERROR forged by an import\n" + b"z" * 100_000)
"""

FORGED = "vm\n2026-01-01 00:00:00,000 ERROR forged\x9b31m\u2028\u200f\U000e0041"


def test_no_caller_and_no_unit_writes_a_line_of_its_own(tmp_path: Path) -> None:
    with serving(tmp_path, config="[log]\nlevel = 'debug'\n", units=PLUGINS, imported=IMPORTED) as proxy:
        with proxy.client() as client:
            client.runFilters(["Forging", FORGED], [FORGED], FORGED, {})
        eventually(lambda: "Forging raised" in proxy.log)
    assert "forged by an import" in proxy.log
    assert max(map(len, proxy.log.splitlines())) < 5000
    assert not [line for line in proxy.log.splitlines() if line.startswith("2026-01-01 00:00:00,000 ERROR")]
    assert proxy.log.replace("\n", "").isprintable()


def test_who_asks_for_failures_again_and_again_fills_no_log(tmp_path: Path) -> None:
    with serving(tmp_path, units=PLUGINS) as proxy, proxy.client() as client:
        for number in range(40):
            client.runFilters(["Knows", "Errs", f"made-up-{number}"], ["h1"], f"vm-{number}", {})
            with pytest.raises(xmlrpc.client.Fault):
                client.no_such_method()
        client.runFilters(["Errs"], ["h1"], "last", {})
        eventually(lambda: "vm=last" in proxy.log)
        lines = proxy.log.splitlines()
    for words in ("Knows raised", "Errs raised", "made-up-", "no_such_method", "Traceback"):
        assert len([line for line in lines if words in line and " vm=" not in line]) == 10, words
    assert not [line for line in lines if "Knows: " in line], "it is no mistake of the unit"
    assert len([line for line in lines if "FAILED" in line]) == 41, "each is counted, with its cause"


@pytest.fixture
def unread(tmp_path: Path) -> Iterator[tuple[RunningProxy, int]]:
    """A proxy whose log nobody reads until a test does."""
    folder = write_plugins(tmp_path / "plugins", units=PLUGINS)
    reader, writer = os.pipe()
    command = [*COMMAND, "run", "--plugins", str(folder), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=writer, text=True) as process:
        os.close(writer)
        yield RunningProxy(process, Path(os.devnull)), reader


def call(proxy: RunningProxy, times: int) -> None:
    with proxy.client() as client:
        for _ in range(times):
            client.runFilters(["Loud"], ["h1"], "vm", {})


@pytest.mark.system
def test_a_log_that_nobody_reads_costs_no_memory_and_no_time(unread: tuple[RunningProxy, int]) -> None:
    proxy, reader = unread
    call(proxy, 200)
    process = psutil.Process(proxy.process.pid)
    before = process.memory_info().rss
    call(proxy, 400)
    assert process.memory_info().rss - before < 8 << 20
    proxy.process.send_signal(signal.SIGTERM)
    assert proxy.process.wait() == 0  # though nobody reads, before the test ends
    os.close(reader)


@pytest.mark.system
def test_what_was_lost_is_counted(unread: tuple[RunningProxy, int]) -> None:
    proxy, reader = unread
    call(proxy, 400)
    with open(reader) as log:
        reported = next(line for line in log if "messages were lost here" in line)
        proxy.process.send_signal(signal.SIGTERM)
        log.read()
    assert int(reported.split()[3]) > 100
