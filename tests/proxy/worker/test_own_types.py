"""Whatever a unit's own exceptions and answers do when they are looked at, it fails with a sentence."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..running import RunningProxy, eventually, running, write_plugins

HOSTS = ["h1", "h2"]

PLUGINS = """
class Leaving(Exception):
    def __str__(self):
        raise SystemExit(3)

class Odd(Exception):
    @property
    def refuses(self):
        raise SystemExit(3)

class List(list):
    def __iter__(self):
        raise SystemExit(3)

class Text(str):
    def __hash__(self):
        raise SystemExit(3)

class Raising:
    def do_filter(self, hosts, vm, args):
        raise self.exception

class Huge(Raising):
    exception = RuntimeError("x" * 3_000_000)

class Unshown(Raising):
    exception = Leaving()

class RefusesOddly(Raising):
    exception = Odd("no")

class Halves(Raising):
    exception = RuntimeError("\\ud800 \\x1b[31m \\0")

class Lines(Raising):
    exception = RuntimeError("first\\nsecond")

class LeavingList:
    def do_filter(self, hosts, vm, args):
        return List(hosts)

class LeavingText:
    def do_filter(self, hosts, vm, args):
        return [Text(host) for host in hosts]

class Crashing:
    def do_filter(self, hosts, vm, args):
        import ctypes, os
        os.write(2, b"noise\\n" * 40_000)
        ctypes.string_at(0)
"""

SENTENCES = {
    "Huge": "raised RuntimeError: xxx",
    "Unshown": "raised Leaving;",
    "RefusesOddly": "raised Odd: no;",
    "Halves": r"raised RuntimeError: \ud800 \x1b[31m \x00;",
    "Lines": "raised RuntimeError: first second;",
    "LeavingList": "its answer cannot be read: SystemExit: 3;",
    "LeavingText": "its answer cannot be read: SystemExit: 3;",
    "Crashing": "crashed its worker process (SIGSEGV);",
}


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    with running(write_plugins(tmp_path_factory.mktemp("types") / "plugins", units=PLUGINS)) as started:
        yield started


@pytest.mark.parametrize("unit", SENTENCES)
def test_a_unit_fails_with_its_own_sentence(proxy: RunningProxy, unit: str) -> None:
    answer = proxy.filters([unit], HOSTS)
    assert answer["result"] == HOSTS
    assert answer["plugin_errors"][unit][0].startswith(SENTENCES[unit])
    assert len(answer["plugin_errors"][unit][0]) < 400


def test_of_a_crash_the_log_has_the_last_words(proxy: RunningProxy) -> None:
    proxy.filters(["Crashing"], HOSTS)
    eventually(lambda: "Crashing: Fatal Python error: Segmentation fault" in proxy.log)
    assert proxy.log.count("noise") < 20_000
