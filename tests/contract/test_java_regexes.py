"""What we say of regular expressions, held against a JVM: no false alarm, and none missed."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from ovirt_scheduler_proxy import plugins as units

SOURCE = Path(__file__).parent / "java/src/main/java/contract/Regexes.java"

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
def test_java_agrees_with_what_we_judge() -> None:
    java = shutil.which("java")
    if java is None:
        pytest.skip("Java is not installed")
    chance = random.Random(1)
    regexes = ["".join(chance.choices(PIECES, k=chance.randint(1, 7))) for _ in range(20_000)]
    run = subprocess.run(
        [java, SOURCE], input="\n".join([*regexes, ""]), capture_output=True, encoding="utf-8", check=True
    )
    wrong = {regex for regex, verdict in zip(regexes, run.stdout.split(), strict=True) if verdict == "wrong"}
    reported = {regex for regex in regexes if units.regex_problem(regex)}
    assert reported <= wrong
    well = {regex for regex in regexes if not units.unchecked_rest(regex)} - reported
    assert well.isdisjoint(wrong)
    assert min(len(reported), len(well)) > 0.03 * len(regexes)
