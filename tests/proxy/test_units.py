"""Parameters are refused and passed as the engine and Java do it; units are what they are said to be."""

import re
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_scheduler_proxy import plugins as units
from ovirt_scheduler_proxy.settings import Server
from tests.proxy.running import RunningProxy, command, running, write_plugins

PACKAGING = Path(__file__).parents[2] / "packaging"
SERVICES = ("ovirt-scheduler-proxy.service", "ovirt-scheduler-proxy@.service")

#: In tenths, as systemd-analyze takes it.
MOST_EXPOSURE = 20


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
@pytest.mark.parametrize("service", SERVICES)
def test_plugins_are_shut_off_from_the_machine(service: str, tmp_path: Path) -> None:
    unit = tmp_path / service.replace("@", "")  # of a template only an instance is judged
    shutil.copy(PACKAGING / service, unit)
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSURE}", unit],
        capture_output=True,
        text=True,
    )
    assert judged.returncode == 0, judged.stdout.splitlines()[-1]


@pytest.mark.parametrize("service", SERVICES)
def test_plugins_run_as_a_user_of_their_own_and_cannot_be_changed(service: str) -> None:
    settings = dict(re.findall(r"^(\w+)=(.*)$", (PACKAGING / service).read_text(), re.MULTILINE))
    assert (settings["User"], settings["ProtectSystem"]) == ("ovirt-scheduler-proxy", "strict")
    assert settings["StartLimitIntervalSec"] == "0"


def test_the_socket_is_where_the_proxy_listens_unless_set_otherwise() -> None:
    socket = (PACKAGING / "ovirt-scheduler-proxy.socket").read_text()
    assert re.findall(r"^ListenStream=(.*)$", socket, re.MULTILINE) == [Server().listen]
    service = (PACKAGING / "ovirt-scheduler-proxy.service").read_text()
    assert "\nSockets=ovirt-scheduler-proxy.socket\n" in service


REFUSED = (
    *("(", "a)", "[b-a]", "*a", "a|*", "(*a)", "a**", "a{3,2}", "[\\x42-\\x41]", "\\((", "(?:a", "a++?"),
    *("{", "a{", "a{x}", "a{,2}", "a{1"),
)
WELL = (
    *("", "a|b", "[0-9]{1,3}", "-?[0-9]+(\\.[0-9]*)?", "True|False", "^[a-z]*$", "(?:a|)b", "(?=a)(?!b)c"),
    *("[a-]", "[-a]", "[^a-z0-9_.-]+", "[\\d.]", "\\d\\S\\w", "\\x41\\u0041\\t", "\\-\\_\\é", "]}"),
    *("a++b*?", "[|#]", "\\bé", "(a)*", "(?:)?"),
)
#: With what only Java can judge, from where on.
UNJUDGED = (
    *("(?<name>a)", "ab→(?i)c", "(?P<n>a)", "(?<=a)b", "[a[b-d]&&[c]]", "[]a]", "[a-\\d]", "[\\d-a]"),
    *("a{2}→{3}", "{2}", "^→*", "a→{99999}", "a*→{2}", "\\p{L}", "(a)→\\1", "\\Q(\\E", "\\ud83d", "a→\\"),
    *(f"{'(' * 300}{')' * 300}", "[a", "\\N{DIGIT ONE}"),
)


@pytest.mark.parametrize("regex", REFUSED)
def test_what_java_refuses_is_reported(regex: str) -> None:
    assert "Java does not compile" in units.property_problems(f"key={regex}")[0]


@pytest.mark.parametrize("regex", [*WELL, *UNJUDGED])
def test_what_java_compiles_or_only_java_can_judge_is_no_problem(regex: str) -> None:
    judged, _, rest = regex.rpartition("→")
    assert units.unchecked_rest(judged + rest) == (rest if regex in UNJUDGED else "")
    said = "; ".join(units.unchecked_properties(f"other=a;key={judged}{rest}"))
    assert ("of key: not checked whether Java compiles it" in said) == (regex in UNJUDGED)
    assert units.property_problems(f"key={judged}{rest}") == []


@pytest.mark.parametrize(
    "text", ["", "a=b", "a=b;", "a_B1=[0-9]*;c=True|False", "a=", "a==", "minimum_host_memoryMB=[0-9]*;b=.*"]
)
def test_properties_that_the_engine_takes(text: str) -> None:
    assert units.property_problems(text) == []


@pytest.mark.parametrize(
    "text", ["a", "=b", "a b=c", "{a=b}", "a=b;;", "a=b;c", "a=b; c=d", "ä=b", "a=b;a=c", ";"]
)
def test_properties_that_the_engine_refuses(text: str) -> None:
    assert units.property_problems(text)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_A-Z0-9]+", fullmatch=True), st.text(st.characters(categories=["L", "N", "Zs"]))
    )
)
def test_keys_and_expressions_make_properties(pairs: dict[str, str]) -> None:
    assert units.property_problems(";".join(f"{key}={value}" for key, value in pairs.items())) == []


# -- The engine's discovery: it comes late, each time with other descriptions, and nobody else waits for it.
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
    properties = [[unit[1] for units in one.values() for unit in units.values()] for one in (first, again)]
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
