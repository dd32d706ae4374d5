"""Regular expressions that the engine's Java would not compile are reported before the engine meets them."""

from __future__ import annotations

import pytest

from ovirt_scheduler_proxy import units


@pytest.mark.parametrize(
    "regex",
    [
        *("(", "a)", "[b-a]", "*a", "a|*", "(*a)", "a**", "a{3,2}", "[\\x42-\\x41]", "\\((", "(?:a", "a++?"),
        *("{", "a{", "a{x}", "a{,2}", "a{1"),
    ],
)
def test_what_java_refuses_is_reported(regex: str) -> None:
    assert units.regex_problem(regex)
    assert "Java does not compile" in units.property_problems(f"key={regex}")[0]


@pytest.mark.parametrize(
    "regex",
    [
        *(
            "",
            "a|b",
            "[0-9]{1,3}",
            "-?[0-9]+(\\.[0-9]*)?",
            "True|False",
            "^[a-z]*$",
            "(?:a|)b",
            "(?=a)(?!b)c",
        ),
        *(
            "[a-]",
            "[-a]",
            "[^a-z0-9_.-]+",
            "[\\d.]",
            "\\d\\S\\w",
            "\\x41\\u0041\\t",
            "\\-\\_\\é",
            "]}",
            "a++b*?",
        ),
        *("[|#]", "\\bé", "(a)*", "(?:)?"),
    ],
)
def test_what_both_languages_have_is_well(regex: str) -> None:
    assert (units.regex_problem(regex), units.unchecked_regex(regex)) == ("", "")
    assert units.unchecked_properties(f"key={regex}") == []


@pytest.mark.parametrize(
    ("regex", "rest"),
    [
        *(
            ("(?<name>a)", "(?<name>a)"),
            ("ab(?i)c", "(?i)c"),
            ("(?P<n>a)", "(?P<n>a)"),
            ("(?<=a)b", "(?<=a)b"),
        ),
        *(
            ("[a[b-d]&&[c]]", "[a[b-d]&&[c]"),
            ("[]a]", "[]a]"),
            ("[a-\\d]", "[a-\\d]"),
            ("[\\d-a]", "[\\d-a]"),
        ),
        *(("a{2}{3}", "{3}"), ("{2}", "{2}"), ("^*", "*"), ("a{99999}", "{99999}"), ("a*{2}", "{2}")),
        *(
            ("\\p{L}", "\\p{L}"),
            ("(a)\\1", "\\1"),
            ("\\Q(\\E", "\\Q(\\E"),
            ("\\ud83d", "\\ud83d"),
            ("a\\", "\\"),
        ),
        *((f"{'(' * 300}{')' * 300}", "(" * 12), ("[a", "[a"), ("\\N{DIGIT ONE}", "\\N{DIGIT ONE")),
    ],
)
def test_what_only_java_can_judge_is_named(regex: str, rest: str) -> None:
    assert (units.regex_problem(regex), units.unchecked_regex(regex)) == ("", rest)
    (said,) = units.unchecked_properties(f"other=a;key={regex}")
    assert "of key: not checked whether Java compiles it" in said
    assert units.property_problems(f"key={regex}") == []
