"""Parameters of units, keys of users and regular expressions, judged by a JVM as the engine judges them."""

import importlib.util
import random
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from ovirt_placement.rules.placement_keys.hierarchy import NAME, PATTERN, is_readable
from ovirt_scheduler_proxy import plugins as units
from tests.plugins.proxy_process import PLUGINS

SOURCES = Path(__file__).parent / "java/src/main/java/contract"

#: Right ones of every kind of parameter, and what is close to them.
VALUES = (
    *("80", "-10", "0.5", "-0.5", "1e3", "1.", ".5", "80 ", " 80", "--1", "+1", "1_000", "x", "٣"),
    *("resources", "vms", "0", "1", "10", "100", "101", "1.5", "-1", "0.0", "0.25", "0.0001", "0.50"),
    *("0.0000", "999", "1000", "99999", "9999999"),
    *("true", "false", "yes", "True", "random", "engine", "ran", "randomengine", "report", "reject"),
    *("cpu", "average", "Average"),
    *("feed-a:n1,n2/feed-b:n3", "feed-a:n1", "feed-a", "feed-a:", "feed-a:n1/", ":n1", "feed-a:n1,,n2"),
)
KEYS = (
    *("A:1:100", "A:1:100,_GREEN:0.5:-50", "Group1:1:100", "a.b-c_d:-1.5:0", f"{'A' * 50}:1:1"),
    *("A", "A:1", "A:1:1,", ",A:1:1", "A:1:1 ", "A:x:1", "#RAM:0:1", "1A:1:1", "A:.5:1", "A:1.:1", "A:1e0:1"),
    *("A=1:1", "A:+1:1", f"{'A' * 51}:1:1", ",".join(f"Key{number}:1:-100.5" for number in range(40))),
)


def declared() -> Iterator[tuple[str, str]]:
    """Every unit and its parameters."""
    for path in sorted(PLUGINS.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"parameters_of_{path.stem}", path)
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, unit in vars(module).items():
            if parameters := getattr(unit, "properties_validation", None):
                yield name, parameters


UNITS = dict(declared())


def judged(program: str, questions: Iterable[str]) -> list[str]:
    """What a program of Java says of each of these lines."""
    java = shutil.which("java")
    if java is None:
        pytest.skip("Java is not installed")
    lines = "".join(f"{question}\n" for question in questions)
    source = SOURCES / f"{program}.java"
    run = subprocess.run([java, source], input=lines, capture_output=True, encoding="utf-8", check=True)
    return run.stdout.splitlines()


@pytest.mark.system
def test_the_engine_lets_in_what_the_units_understand() -> None:
    """The engine's patterns are Java's, and its answer is that of ours for whatever value."""
    questions, expected = [], []
    for parameters in UNITS.values():
        for name, pattern in (part.split("=", 1) for part in parameters.split(";")):
            for value in VALUES:
                questions.append(f"{parameters}\t{name}\t{value}")
                expected.append("right" if re.fullmatch(pattern, value) else "wrong")
    found = judged("EngineProperties", questions)
    assert found == expected
    names = [question.split("\t")[1] for question in questions]
    assert {name for name, verdict in zip(names, found, strict=True) if verdict == "right"} == set(names)


def test_units_that_share_a_parameter_mean_the_same_by_it() -> None:
    """The engine keeps one pattern of a name for a whole policy."""
    patterns: dict[str, str] = {}
    for parameters in UNITS.values():
        for name, pattern in (part.split("=", 1) for part in parameters.split(";")):
            assert patterns.setdefault(name, pattern) == pattern


@pytest.mark.system
def test_the_engine_lets_in_the_keys_that_a_placement_reads() -> None:
    found = judged("EngineProperties", [f"{NAME}={PATTERN}\t{NAME}\t{text}" for text in KEYS])
    assert found == ["right" if is_readable(text) else "wrong" for text in KEYS]
    assert found.count("right") == 6


def test_the_page_gives_administrators_this_very_pattern() -> None:
    assert f"'{NAME}={PATTERN}'" in (PLUGINS.parent / "docs/placement-keys.md").read_text()


#: Of which regular expressions are drawn.
PIECES = (
    *("a", "b", "Z", "0", "9", "-", "^", "$", ".", "|", "(", ")", "[", "]", "{", "}", "?", "*", "+", "\\"),
    *("&", "é"),
    *("\\d", "\\b", "\\x41", "\\u0041", "\\012", "\\p{L}", "\\k<n>", "\\c", "\\E", "\\1", "(?<n>", "(?:"),
    *("(?=",),
    *("(?P<n>", "(?i)", "(?i:", "(?-i)", "{2}", "{2,}", "{3,1}", "{,2}", "[^", "[a-z]", "<", ">", "=", "#"),
    *(" ",),
    *("&&", "\\Q", "\\Q(\\E", "\\x{0000041}", "\\x{110000}", "\\x", "\\u00", "\\v", "\\ud83d\\ude00"),
    *("\\n", "\\R"),
    *("\\pX", "\\p{Lower}", "\\p{Foo}", "\\p{javaDigit}", "\\P{gc=Lu}", "\\p{gc=Foo}", "(?U)", "(?<m>"),
)


@pytest.mark.system
def test_of_regular_expressions_no_false_alarm_is_raised_and_none_missed() -> None:
    chance = random.Random(1)
    regexes = ["".join(chance.choices(PIECES, k=chance.randint(1, 7))) for _ in range(20_000)]
    verdicts = zip(regexes, judged("Regexes", regexes), strict=True)
    wrong = {regex for regex, verdict in verdicts if verdict == "wrong"}
    reported = {regex for regex in regexes if units.regex_problem(regex)}
    assert reported <= wrong
    well = {regex for regex in regexes if not units.unchecked_rest(regex)} - reported
    assert well.isdisjoint(wrong)
    assert min(len(reported), len(well)) > 0.03 * len(regexes)
