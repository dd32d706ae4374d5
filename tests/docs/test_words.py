"""The words that docs/developers/style.md avoids do not come back, in code, tests, pages and samples."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.paths import CHECKOUT

STYLE = CHECKOUT / "docs" / "developers" / "style.md"
#: The page names them, and this file what finds them.
THEMSELVES = (STYLE, Path(__file__))
FOLDERS = (
    *("placement", "plugins", "proxy", "enforcer", "service", "simulator", "web", "demo", "release"),
    *("tests", "tools"),
)
TEXTS = (".py", ".md", ".toml", ".1", ".service", ".socket", ".json", ".sh", ".conf")
#: The web page's own.
PAGE_TEXTS = (".js", ".css", ".html")


def _table(title: str) -> list[list[str]]:
    section = STYLE.read_text().split(f"## {title}\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return rows[2:] if rows[1][0].startswith("---") else rows[1:]


def _pattern(phrase: str) -> str:
    """The phrase on one line or two, as words of a text or as parts of a name."""
    words = phrase.split()
    text = r"[\s#:_]+".join(words)
    camel = "".join(word.capitalize() for word in words)
    return rf"(?<![A-Za-z])(?i:{text})(?![a-z])|(?<=[a-z]){camel}(?![a-z])"


AVOIDED = [phrase.strip() for avoid, _ in _table("Words to avoid") for phrase in avoid.split(",")]


def _found_in(text: str) -> Iterator[re.Match[str]]:
    """Where an avoided phrase stands; only phrases whose first word the text has somewhere are looked for."""
    lowered = text.lower()
    found = {}
    for phrase in AVOIDED:
        first, at = phrase.split()[0].lower(), -1
        while (at := lowered.find(first, at + 1)) >= 0:
            if match := _compiled(phrase).match(text, at):
                found[at] = match
    end = 0
    for at in sorted(found):
        if at >= end:
            end = found[at].end()
            yield found[at]


@cache
def _compiled(phrase: str) -> re.Pattern[str]:
    return re.compile(_pattern(phrase))


def _exceptions() -> Iterator[tuple[str, set[str]]]:
    for where, words, _ in _table("Where they stay"):
        for double, single in re.findall(r"`` (.+?) ``|`(.+?)`", where):
            yield double or single, set(words.split(", "))


#: Words that may stay in some files, and words that may stay in lines with something.
IN_FILES = [(part, words) for part, words in _exceptions() if "/" in part]
IN_LINES = [(part, words) for part, words in _exceptions() if "/" not in part]


@cache
def texts() -> dict[str, str]:
    """What each file holds, by its path."""
    return {f"/{file.relative_to(CHECKOUT)}": file.read_text(errors="replace") for file in files()}


def files() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from (CHECKOUT / folder).rglob("*.py")
    for folder in ("docs", "packaging", "tests/scenarios"):
        yield from (path for path in (CHECKOUT / folder).rglob("*") if path.suffix in TEXTS)
    yield from (path for path in (CHECKOUT / "packaging" / "completions").rglob("*") if path.is_file())
    page = (path for path in (CHECKOUT / "web").rglob("*") if path.suffix in PAGE_TEXTS)
    yield from (path for path in page if "vendor" not in path.parts)
    yield from CHECKOUT.glob("*.md")


def found_in(text: str, file: str = "") -> list[str]:
    """Each avoided word with its line number, but for those that may stay there."""
    allowed = {word for part, words in IN_FILES if part in file for word in words}
    found = []
    for match in _found_in(text):
        word = re.sub(r"[\s#:_]+", " ", match[0].lower())
        start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
        line = text[start : end if end >= 0 else len(text)]
        if word not in allowed and not any(part in line and word in words for part, words in IN_LINES):
            found.append(f"line {text.count(chr(10), 0, start) + 1}: {match[0]}")
    return found


def test_avoided_words_are_nowhere() -> None:
    themselves = {f"/{file.relative_to(CHECKOUT)}" for file in THEMSELVES}
    judged = {name: found_in(text, name) for name, text in texts().items() if name not in themselves}
    assert {name: words for name, words in judged.items() if words} == {}


@pytest.mark.parametrize(
    "text",
    [
        "def is_told() -> None: ...",
        "class BrokenRule: ...",
        "TOLD = 1",
        'print("the rule is broken")',
        "# Whoever asks",
        "A page tells\nof it.",
        "so\n#: many hosts",
        "Every rule holds.",
    ],
)
def test_an_avoided_word_is_found(text: str) -> None:
    assert len(found_in(text)) == 1


def test_each_exception_is_needed() -> None:
    for part, words in IN_FILES:
        whole = "\n".join(text for name, text in texts().items() if part in name)
        assert {match[0].lower() for match in _found_in(whole)} >= words, part
    for part, _ in IN_LINES:
        assert any(part in text for text in texts().values()), part


def test_replacements_are_not_avoided() -> None:
    for _, instead in _table("Words to avoid"):
        assert found_in(instead) == []
