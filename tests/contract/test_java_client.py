"""Drives the proxy with the engine's own client library and settings: Apache XML-RPC 3.1.3 on a JVM."""

import fcntl
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.proxy.running import running, write_plugins

from . import random_units

PROJECT = Path(__file__).parent / "java"

#: Builds the Java side, and writes down where its libraries are.
MAVEN = ["mvn", "-q", "-B", "compile", "dependency:build-classpath", "-Dmdep.outputFile=target/classpath"]


def java_class_path() -> str:
    """Build the Java side and return its class path; skip the test where that cannot be."""
    if shutil.which("mvn") is None or shutil.which("java") is None:
        pytest.skip("Maven is not installed")
    (PROJECT / "target").mkdir(exist_ok=True)
    with (PROJECT / "target/lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests may run in several processes; Maven builds in place
        built = subprocess.run(MAVEN, cwd=PROJECT, capture_output=True, text=True)
    if built.returncode and "Could not transfer artifact" in built.stdout:
        pytest.skip("Maven cannot reach its repository")
    assert built.returncode == 0, built.stdout + built.stderr
    libraries = (PROJECT / "target/classpath").read_text().strip()
    return f"{PROJECT / 'target/classes'}:{libraries}"


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


ANSWERS = 10_000

CONFIG = """
[calls]
deadline_seconds = 1
[workers]
memory_mib = 128
[log]
level = "error"
"""


def test_no_answer_makes_the_engine_throw(tmp_path: Path) -> None:
    class_path = java_class_path()
    folder = tmp_path / "plugins"
    folder.mkdir()
    shutil.copy(random_units.__file__, folder / "random_units.py")
    hostile = ",".join(f"Hostile{number}" for number in range(random_units.HOSTILE))
    with running(folder, config=CONFIG) as proxy:
        command = ["java", "-cp", class_path, "contract.RandomAnswers", proxy.url, str(ANSWERS), hostile]
        read = subprocess.run(command, capture_output=True, text=True, timeout=500)
        assert read.returncode == 0, read.stderr
        units, answers, failures, full = (int(word) for word in read.stdout.split() if word.isdigit())
    assert units == random_units.HOSTILE + 4
    assert answers == ANSWERS
    assert min(failures, ANSWERS - failures, full) > ANSWERS // 5
