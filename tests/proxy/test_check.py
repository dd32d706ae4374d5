"""`check` shows which units there are, and what is wrong with plugins, interpreters and configuration."""

import json
import shutil
from pathlib import Path

import pytest

from tests.paths import PLUGINS
from tests.placement.cli.documents import defined
from tests.proxy.pool.watching import GOOD
from tests.proxy.running import command, write_plugins

pytestmark = pytest.mark.system


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
        for name in ("L" * 129, "", " ", "\\u202e", "\\U000e0001"):
            globals()[name] = type("Named", (), {"do_filter": lambda self, hosts, vm, args: hosts})
        class Many:
            properties_validation = ";".join(f"key{number}=[0-9]" for number in range(102))
            def do_filter(self, hosts, vm, args): return hosts
        class Long:
            properties_validation = "a=" + "x" * 50_000
            def do_filter(self, hosts, vm, args): return hosts
            do_filter.__doc__ = "x" * 3_000_000
        class NoEnd:
            properties_validation = f"{'k' * 9000}=a{{{'9' * 9000}}}"
            def do_filter(self, hosts, vm, args): return hosts
        """,
        shouts="raise RuntimeError('x' * 3_000_000)",
        two_lines="raise RuntimeError('first\\nsecond')",
        mute="class Mute(Exception):\n  def __str__(self): raise SystemExit\nraise Mute",
        noisy=r"import os; os.write(2, b'\x1b[31m noise \xff')",
        unreadable="""
        class Half:
            def do_filter(self, hosts, vm, args): return hosts
            do_filter.__doc__ = "half \\ud800 \\x1b[31m a character"
            def do_score(self, hosts, vm, args): return []
            do_score.__doc__ = b"bytes"
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
        ("flawed.py", "NoJava"): "Java does not compile '(' of x: missing )",
        **{("flawed.py", name): "128 characters" for name in ("L" * 129, "", " ", "\u202e", "\U000e0001")},
        ("flawed.py", "Many"): "more than 100 parameters",
        ("flawed.py", "Long"): "more than 50000 characters",
        ("shouts.py", ""): "RuntimeError: xxx",
        ("two_lines.py", ""): "RuntimeError: first second",
        ("mute.py", ""): "Mute",
        ("again.py", "Good"): str(one / "good.py"),
    }
    assert set(problems) == set(expected)
    for key, words in expected.items():
        assert words in problems[key]
    assert units["Half", "filter"]["description"] == "half \\ud800 \\x1b[31m a character"
    assert units["Half", "score"]["description"] == ""
    assert ("L" * 129, "filter") not in units
    assert max(len(problem) for problem in problems.values()) < 600
    assert units["Many", "filter"]["parameters"] == units["Long", "filter"]["parameters"] == ""
    assert len(units["Long", "filter"]["description"]) == 10_000
    printed = command("check", "--plugins", str(one))
    assert (printed.returncode, printed.stderr) == (1, "")
    assert printed.stdout.replace("\n", "").isprintable()
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


def test_the_old_proxys_environment_variable_is_honoured(tmp_path: Path) -> None:
    folder = write_plugins(tmp_path / "plugins", good=GOOD)
    done = command("check", "--all", environment={"OSCHEDPROXY_PLUGINS": str(folder)})
    assert done.returncode == 0
    assert str(folder) in done.stdout


def test_check_refuses_units_that_are_none(tmp_path: Path) -> None:
    config = tmp_path / "proxy.toml"
    config.write_text('[units.AffinityFiltre]\non_failure = "reject"\n')
    asked = ("check", "--plugins", str(PLUGINS), "--config", str(config))
    done = command(*asked)
    assert done.returncode == 1
    sentence = 'no plugin has such a unit; did you mean "AffinityFilter"?'
    assert f"  [units.AffinityFiltre] in the configuration: {sentence}" in done.stdout
    (problem,) = json.loads(command(*asked, "--json").stdout)["problems"]
    assert problem["unit"] == "AffinityFiltre"


def test_check_shows_files_and_parameters_on_demand() -> None:
    brief = command("check", "--plugins", str(PLUGINS)).stdout
    assert max(map(len, brief.splitlines())) < 100
    assert "affinity.py" not in brief
    assert "affinity.py" in command("check", "--plugins", str(PLUGINS), "--all").stdout
