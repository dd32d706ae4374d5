"""Loading plugins: folders, broken modules, names used twice, `check`, own interpreters, workers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_scheduler_proxy.plugins import properties
from tests.paths import PLUGINS
from tests.placement.cli.documents import defined

from ..running import command, running, write_plugins

GOOD = '''
class Good:
    properties_validation = "good_limit=[0-9]+"
    def do_filter(self, hosts, vm, args):
        """Accepts all"""
        return hosts
'''


def test_check_prints_units_and_problems(tmp_path: Path) -> None:
    one = write_plugins(
        tmp_path / "one",
        good=GOOD,
        raises="1 / 0",
        old_python="print 'hello'",
        exits="import sys; sys.exit(3)",
        dies="import os; os._exit(3)",
        crashes="import ctypes; ctypes.string_at(0)",
        json="class Shadow:\n    def do_filter(self, hosts, vm, args): return hosts",
        flawed="""
        class BadProperties:
            properties_validation = "{ cpu = [0-9] }"
            def do_filter(self, hosts, vm, args): pass
        class NoText:
            properties_validation = {"a": "b"}
            def do_score(self, hosts, vm, args): pass
        class FewArguments:
            def do_balance(self, hosts): pass
        class Demanding:
            def __init__(self, wanted): pass
            def do_filter(self, hosts, vm, args): pass
        class NoMethod:
            do_filter = "text"
        class NoJava:
            properties_validation = "x=("
            def do_filter(self, hosts, vm, args): return hosts
        globals()["L" * 129] = type("Long", (), {"do_filter": lambda self, hosts, vm, args: hosts})
        """,
        shouts="raise RuntimeError('x' * 3_000_000)",
        unreadable="""
        class Half:
            def do_filter(self, hosts, vm, args): return hosts
            do_filter.__doc__ = "half \\ud800 \\x1b[31m a character"
        """,
    )
    two = write_plugins(
        tmp_path / "two", imports="from two_lib import Other", two_lib=GOOD.replace("Good", "Other")
    )
    (two / "again.py").write_text(GOOD)
    done = command("check", "--plugins", str(one), "--plugins", str(two), "--json")
    assert done.returncode == 1, done.stderr
    found = defined(done.stdout, "ProxyCheck")
    units = {(unit["unit"], unit["kind"]): unit for unit in found["units"]}
    assert units["Good", "filter"] == {
        "unit": "Good",
        "kind": "filter",
        "file": str(one / "good.py"),
        "parameters": "good_limit=[0-9]+",
        "description": "Accepts all",
    }
    problems = {(Path(each["file"]).name, each["unit"]): each["problem"] for each in found["problems"]}
    expected = {
        ("raises.py", ""): "ZeroDivisionError",
        ("old_python.py", ""): "SyntaxError",
        ("exits.py", ""): "SystemExit",
        ("dies.py", ""): "ended the process",
        ("crashes.py", ""): "ended the process",
        ("json.py", ""): "another name",
        ("flawed.py", "BadProperties"): "letters, digits and _",
        ("flawed.py", "NoText"): "must be text",
        ("flawed.py", "FewArguments"): "must take (self, hosts, args)",
        ("flawed.py", "Demanding"): "constructor needs arguments",
        ("flawed.py", "NoMethod"): "is no method",
        ("flawed.py", "NoJava"): "Java does not compile '(' of x: an unclosed (",
        ("flawed.py", "L" * 129): "128 characters",
        ("shouts.py", ""): "RuntimeError: xxx",
        ("again.py", "Good"): str(one / "good.py"),
    }
    assert set(problems) == set(expected)
    for key, words in expected.items():
        assert words in problems[key]
    assert units["Half", "filter"]["description"] == "half \\ud800 \\x1b[31m a character"
    assert ("L" * 129, "filter") not in units
    assert max(len(problem) for problem in problems.values()) < 500
    printed = command("check", "--plugins", str(one))
    assert (printed.returncode, printed.stderr) == (1, "")
    assert "\x1b" not in printed.stdout
    assert ("Other", "filter") in units, "an imported class is registered, and importing it is no problem"


def test_check_in_words(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", good=GOOD)
    done = command("check", "--all", "--plugins", str(folder))
    assert done.returncode == 0
    for word in ("Good", "filter", "good.py", "good_limit=[0-9]+", "Accepts all"):
        assert word in done.stdout
    assert "Problems" not in done.stdout


def test_a_module_that_hangs_is_given_up(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", a_hangs="while True: pass", good=GOOD)
    config = tmp_path / "proxy.toml"
    config.write_text("[workers]\nload_seconds = 0.5\n")
    done = command("check", "--plugins", str(folder), "--config", str(config))
    assert done.returncode == 1
    assert "longer than 0.5 s" in done.stdout
    assert "Good" in done.stdout


def test_modules_with_threads_and_connections_are_not_shared_between_workers(tmp_path: Path) -> None:
    folder = write_plugins(
        tmp_path / "plugins",
        threaded="""
        import os, threading, time
        beats = []
        def beat():
            while True:
                time.sleep(0.01)
                beats.append(1)
        threading.Thread(target=beat, daemon=True).start()
        OWNER = os.getpid()
        class Beats:
            def do_filter(self, hosts, vm, args):
                seen = len(beats)
                while len(beats) == seen:
                    time.sleep(0.005)
                return hosts if OWNER == os.getpid() else []
        """,
        good=GOOD,
    )
    with running(folder, config="[calls]\ndeadline_seconds = 5\n") as proxy:
        answer = proxy.filters(["Beats", "Good"], ["h1"])
        assert answer == {"result_code": 0, "result": ["h1"], "plugin_errors": {}, "errors": []}


def test_a_folder_may_bring_its_own_interpreter(tmp_path: Path) -> None:
    own = tmp_path / "own"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(own)], check=True)
    (site,) = own.glob("lib/python*/site-packages")
    (site / "site_library.py").write_text("ANSWER = ['h2']\n")
    mine = write_plugins(tmp_path / "mine", good=GOOD)
    theirs = write_plugins(
        tmp_path / "theirs",
        site_unit="""
        import site_library
        try:
            import msgspec
        except ImportError:
            msgspec = None
        class FromSite:
            def do_filter(self, hosts, vm, args):
                return site_library.ANSWER if msgspec is None else []
        """,
    )
    config = f"""
    [[plugins]]
    directory = "{mine}"
    [[plugins]]
    directory = "{theirs}"
    python = "{own}/bin/python"
    """
    with running(config=config, environment={"TMPDIR": str(tmp_path)}) as proxy:
        assert proxy.filters(["Good", "FromSite"], ["h1", "h2"])["result"] == ["h2"]


@pytest.mark.skipif(shutil.which("false") is None, reason="there is no command that fails")
@pytest.mark.parametrize("python", ["/nowhere/python", "false"])
def test_an_interpreter_that_does_not_run_is_named(tmp_path: Path, python: str) -> None:
    folder = write_plugins(tmp_path / "plugins", good=GOOD)
    config = tmp_path / "proxy.toml"
    config.write_text(f'[[plugins]]\ndirectory = "{folder}"\npython = "{python}"\n')
    done = command("check", "--config", str(config))
    assert done.returncode == 2
    assert python in done.stderr
    assert done.stderr.count("\n") == 1


def test_each_call_can_have_a_fresh_process(tmp_path: Path) -> None:
    folder = write_plugins(
        tmp_path / "plugins",
        stateful="""
        class Stateful:
            seen = []
            def do_filter(self, hosts, vm, args):
                self.seen.append(vm)
                return hosts[: len(self.seen)]
        """,
    )
    config = f'[[plugins]]\ndirectory = "{folder}"\ncalls_per_worker = 1\n'
    hosts = ["h1", "h2", "h3"]
    with running(folder, config=config) as proxy:
        assert [proxy.filters(["Stateful"], hosts)["result"] for _ in range(12)] == [["h1"]] * 12
    with running(folder) as proxy:
        assert max(len(proxy.filters(["Stateful"], hosts)["result"]) for _ in range(12)) > 1


def test_the_old_proxys_environment_variable_is_honoured(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", good=GOOD)
    done = command("check", "--all", environment={"OSCHEDPROXY_PLUGINS": str(folder)})
    assert done.returncode == 0
    assert str(folder) in done.stdout


def test_a_plugin_is_told_that_it_need_not_print_as_for_the_old_proxy(tmp_path: Path) -> None:
    folder = write_plugins(
        tmp_path / "plugins",
        either="""
        import os
        class Either:
            def do_filter(self, hosts, vm, args):
                if os.environ.get("OVIRT_SCHEDULER_PROXY_TAKES") == "returned":
                    return hosts
                print(hosts[:1])
        """,
    )
    with running(folder) as proxy:
        assert proxy.filters(["Either"], ["h1", "h2"])["result"] == ["h1", "h2"]


def test_units_of_one_call_run_side_by_side(tmp_path: Path) -> None:
    folder = write_plugins(
        tmp_path / "plugins",
        meeting="""
        import os, time
        class _Meet:
            def do_filter(self, hosts, vm, args):
                open(os.path.join(args["meeting"], type(self).__name__), "w").close()
                while len(os.listdir(args["meeting"])) < 3:
                    time.sleep(0.002)
                return hosts
        class MeetA(_Meet): pass
        class MeetB(_Meet): pass
        class MeetC(_Meet): pass
        """,
    )
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    with running(folder) as proxy:
        answer = proxy.filters(["MeetA", "MeetB", "MeetC"], ["h1"], {"meeting": str(meeting)})
    assert answer["result_code"] == 0


def test_a_unit_holds_two_workers_at_most(tmp_path: Path) -> None:
    folder = write_plugins(
        tmp_path / "plugins",
        crowd="""
        import os, time
        class Crowd:
            def do_filter(self, hosts, vm, args):
                path = os.path.join(args["crowd"], str(os.getpid()))
                open(path, "w").close()
                time.sleep(0.05)
                present = len(os.listdir(args["crowd"]))
                os.unlink(path)
                return hosts[:present]
        """,
    )
    crowd = tmp_path / "crowd"
    crowd.mkdir()
    hosts = [f"h{number}" for number in range(9)]
    counts: list[int] = []
    with running(folder) as proxy:

        def ask() -> None:
            counts.append(len(proxy.filters(["Crowd"], hosts, {"crowd": str(crowd)})["result"]))

        clients = [threading.Thread(target=ask) for _ in range(8)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
    assert len(counts) == 8
    assert max(counts) == 2


@pytest.mark.parametrize(
    "text", ["", "a=b", "a=b;", "a_B1=[0-9]*;c=True|False", "a=", "a==", "minimum_host_memoryMB=[0-9]*;b=.*"]
)
def test_properties_that_the_engine_takes(text: str) -> None:
    assert properties.problems(text) == []


@pytest.mark.parametrize(
    "text", ["a", "=b", "a b=c", "{a=b}", "a=b;;", "a=b;c", "a=b; c=d", "ä=b", "a=b;a=c", ";"]
)
def test_properties_that_the_engine_refuses(text: str) -> None:
    assert properties.problems(text)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_A-Z0-9]+", fullmatch=True), st.text(st.characters(categories=["L", "N", "Zs"]))
    )
)
def test_keys_and_expressions_make_properties(pairs: dict[str, str]) -> None:
    assert properties.problems(";".join(f"{key}={value}" for key, value in pairs.items())) == []


def test_check_refuses_units_that_are_none(tmp_path: Path) -> None:
    config = tmp_path / "proxy.toml"
    config.write_text('[units.AffinityFiltre]\non_failure = "reject"\n')
    done = command("check", "--plugins", str(PLUGINS), "--config", str(config))
    assert done.returncode == 1
    sentence = 'no plugin has such a unit; did you mean "AffinityFilter"?'
    assert f"  [units.AffinityFiltre] in the configuration: {sentence}" in done.stdout
    (problem,) = json.loads(
        command("check", "--plugins", str(PLUGINS), "--config", str(config), "--json").stdout
    )["problems"]
    assert problem["unit"] == "AffinityFiltre"


def test_check_shows_files_and_parameters_on_demand() -> None:
    brief = command("check", "--plugins", str(PLUGINS)).stdout
    assert max(map(len, brief.splitlines())) < 100
    assert "affinity.py" not in brief
    assert "affinity.py" in command("check", "--plugins", str(PLUGINS), "--all").stdout
