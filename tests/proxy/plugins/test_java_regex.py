"""Regular expressions that the engine's Java would not compile are reported before the engine meets them."""

from __future__ import annotations

import pytest

from ovirt_scheduler_proxy.plugins import java_regex, properties


@pytest.mark.parametrize(
    "regex",
    [
        *(
            "(",
            "a)",
            "[a",
            "[]",
            "[^]",
            "(?P<n>a)",
            "(?P=n)",
            "(?#a)",
            "(?<1>a)",
            "(?<n>a)(?<n>b)",
            "\\k<n>",
            "(?<n",
        ),
        *("*a", "+", "a**", "a|*", "(?i)*", "{", "a{", "a{x}", "a{,2}", "a{3,2}", "a{1", "a{99999999999}"),
        *(
            "\\",
            "\\i",
            "\\8\\g<1>",
            "\\x4",
            "\\u12",
            "\\08",
            "\\p{",
            "\\E",
            "[\\b]",
            "[\\z]",
            "[b-a]",
            "[a-\\d]",
            "\\c",
        ),
        *("\\x{}", "\\x{110000}", "[\\x42-\\x41]", "[\\ud83d\\ude01-\\ud83d\\ude00]", f"a{{{'9' * 5000}}}"),
        *("\\Q(\\E(", "a\\Q\\E)", "\\Qa\\E{", "[a&&", "[&&]", "[^&&&]", "[a&&[b]", "[a&&\\b]"),
        *("\\pX", "\\p{Foo}", "\\p{lower}", "\\p{javaFoo}", "\\p{gc=Foo}", "\\p{foo=Lu}", "\\p{}"),
    ],
)
def test_what_java_refuses_is_reported(regex: str) -> None:
    assert java_regex.problem(regex)
    assert "Java does not compile" in properties.problems(f"key={regex}")[0]


@pytest.mark.parametrize(
    "regex",
    [
        *(
            "",
            "a|b",
            "[0-9]{1,3}",
            "-?[0-9]+(\\.[0-9]*)?",
            "(?<name>a)\\k<name>",
            "(?i:a)(?-i)b",
            "(?i)a",
            "(?>a)b",
        ),
        *(
            "a{2}{3}",
            "{2}",
            "a++b*?c?+",
            "]}",
            "[]a]",
            "[^]a]",
            "[a[b-d]&&[c]]",
            "[a-]",
            "[a-[b]]",
            "\\p{L}\\pL",
        ),
        *(
            "\\x41\\x{1F600}\\u0041\\012\\cA",
            "\\Q(\\E",
            "(?x) ( # )",
            "^*$*",
            "\\b{g}",
            "\\N{DIGIT ONE}",
            "(?<=a)(?<!b)c",
        ),
        *(
            "\\x{000000041}",
            "[\\x01-\\v]",
            "\\Q*\\E*",
            "(a)\\1\\Q2\\E",
            "[\\Q]^\\E]",
            "\\Q[",
            "\\\\Q",
            "\\cQ",
        ),
        *("[a&&b]", "[a&&]", "[a&&&b]", "[&]", "[&&a]", "[a&&^[b]c&&]", "[]&&a]", "(?x)(", "(?-x:a)"),
        *(
            "\\p{Lu}",
            "\\p{javaMirrored}",
            "\\p{gc=Alpha}",
            "\\p{Script=Latin}",
            "\\p{IsLatin}",
            "(?U)\\p{lower}",
        ),
        *("(a)\\1\\2", "\\-\\_\\é", "(" * 300 + ")" * 300),
    ],
)
def test_what_java_compiles_is_well(regex: str) -> None:
    assert java_regex.problem(regex) == ""
