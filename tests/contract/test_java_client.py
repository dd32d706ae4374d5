"""Drives the proxy with the engine's own client library and settings: Apache XML-RPC 3.1.3 on a JVM."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.proxy.running import running, write_plugins

from .java_side import java_class_path

pytestmark = [pytest.mark.java, pytest.mark.nightly]

PLUGINS = '''
class Keep:
    properties_validation = "keep_mode=a|b"
    def do_filter(self, hosts, vm, args):
        """Behält jeden zweiten <Host> & sonst keinen — 保持"""
        return hosts[::2] if args == {"CpuOverCommitDurationMinutes": "2", "HighUtilization": "80"} else []
    def do_score(self, hosts, vm, args):
        """Weighs"""
        return [(host, -number) for number, host in enumerate(hosts)]
    def do_balance(self, hosts, args):
        """Moves"""
        return ("11111111-2222-3333-4444-555555555555", hosts[1:])

class Failing:
    def do_filter(self, hosts, vm, args):
        raise RuntimeError("failed é")
    do_score = do_filter
    def do_balance(self, hosts, args):
        raise RuntimeError("failed é")
'''


def host(number: int) -> str:
    return f"{number:08d}-1111-2222-3333-444444444444"


class Engine:
    """The Java side: takes a command, gives a line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, command: str) -> str:
        stdin, stdout = self._process.stdin, self._process.stdout
        stdin.write(f"{command}\n")
        stdin.flush()
        return stdout.readline().rstrip("\n")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    classpath = java_class_path()
    folder = write_plugins(tmp_path_factory.mktemp("java") / "plugins", units=PLUGINS)
    with running(folder) as proxy:
        java = ["java", "-cp", classpath, "contract.EngineClient", proxy.url]
        with subprocess.Popen(java, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            yield Engine(process)
            if process.stdin is not None:
                process.stdin.close()


def test_discover(engine: Engine) -> None:
    properties = "keep_mode=a|b"
    stamp = r" ?\[discovered [-0-9]+ [0-9:.]+ UTC\]"
    assert re.sub(stamp, "", engine.ask("discover")) == " | ".join(
        [
            "balance/Failing//",
            f"balance/Keep/Moves/{properties}",
            "filters/Failing//",
            f"filters/Keep/Behält jeden zweiten <Host> & sonst keinen — 保持/{properties}",
            "scores/Failing//",
            f"scores/Keep/Weighs/{properties}",
        ]
    )


@pytest.mark.parametrize("count", [0, 1, 500, 5000])
def test_filter_and_score_and_balance(engine: Engine, count: int) -> None:
    hosts = [host(number) for number in range(count)]
    assert engine.ask(f"runFilters Keep {count}") == "0  " + ",".join(hosts[::2])
    weights = ",".join(f"{each}={-number}=Keep" for number, each in enumerate(hosts))
    assert engine.ask(f"runCostFunctions Keep {count}") == f"0  {weights}"
    moved = f"11111111-2222-3333-4444-555555555555:{','.join(hosts[1:])}" if count > 1 else ":"
    assert engine.ask(f"runLoadBalancing Keep {count}") == f"0  {moved}"


def test_missing_and_failing_units(engine: Engine) -> None:
    hosts = ",".join(map(host, range(3)))
    assert engine.ask("runFilters Failing,Absent 3") == f"1 Absent,Failing {hosts}"
    assert engine.ask("runCostFunctions Absent,Failing 3") == "1 Absent,Failing "
    assert engine.ask("runLoadBalancing Absent 3") == "1 Absent :"
    assert engine.ask("runLoadBalancing Failing 3") == "1 Failing :"


def test_an_unknown_method_is_a_fault_with_a_sentence(engine: Engine) -> None:
    assert engine.ask("noSuchMethod").startswith("fault -32601 there is no method")
