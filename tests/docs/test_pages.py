"""All pages: links, the index, line lengths, pictures; and what is made from the code is up to date."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.docs.generated import PAGES as GENERATED
from tests.paths import CHECKOUT

PAGES = [*sorted(CHECKOUT.glob("*.md")), *sorted((CHECKOUT / "docs").rglob("*.md"))]
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


@cache
def anchors(page: Path) -> set[str]:
    """The names of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(text)}


def leads_nowhere(page: Path, link: str) -> bool:
    file, _, anchor = link.partition("#")
    target = (page.parent / file).resolve() if file else page
    if not target.exists():
        return True
    return bool(anchor) and anchor not in anchors(target)


def links_of(page: Path) -> list[str]:
    return _LINK.findall(_CODE.sub("", page.read_text()))


def test_every_link_leads_somewhere() -> None:
    links = [(page, link) for page in PAGES for link in links_of(page) if "://" not in link]
    assert len(links) > len(PAGES) > 30
    assert [(page.name, link) for page, link in links if leads_nowhere(page, link)] == []


INDEX = CHECKOUT / "docs" / "index.md"


def test_each_page_is_in_one_group() -> None:
    _, *groups = INDEX.read_text().split("\n## ")
    assert [one.partition("\n")[0] for one in groups] == ["Start", "Use", "Operate", "Reference", "Develop"]
    listed = re.findall(r"^- \[[^\]]+\]\(([^)#]+\.md)\)", "\n".join(groups), re.MULTILINE)
    assert set(listed) <= set(links_of(INDEX))
    found = Counter((INDEX.parent / page).resolve() for page in listed)
    assert found == Counter(page for page in PAGES if page != INDEX)


LONGEST = 119
FOLDED = [page for page in PAGES if page not in GENERATED and page.name != "CHANGELOG.md"]
#: A row of a table, or a link alone, which may stand in brackets or in a list.
_WHOLE = re.compile(r"\s*(\||[-*<(]?\s*(\[[^\]]*\]\()?https?://\S+$)")
#: What somebody types can be folded by a backslash.
_TYPED = re.compile(r"\s*[$#] ")


def too_long(text: str) -> Iterator[int]:
    """Lines that could be folded: what commands print stands between fences, and is left as it is."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif len(line) > LONGEST and not _WHOLE.match(line) and (not fenced or _TYPED.match(line)):
            yield number


def test_generated_pages_are_known() -> None:
    assert CHECKOUT / "docs" / "commands.md" in GENERATED
    assert len(FOLDED) > 30


def test_lines_of_pages_are_short() -> None:
    assert [(page.name, line) for page in FOLDED for line in too_long(page.read_text())] == []


PICTURES = sorted((CHECKOUT / "docs" / "pictures").glob("*.svg"))
SVG = "{http://www.w3.org/2000/svg}"
USES = [
    (" ".join(alt.split()), (page.parent / file).resolve())
    for page in PAGES
    for alt, file in re.findall(r"!\[([^\]]*)\]\(([^)]*\.svg)\)", page.read_text())
]


def luminance(colour: str) -> float:
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def test_each_is_shown_with_its_words() -> None:
    assert {file for _, file in USES} == set(PICTURES)
    assert all(len(alt) > 60 for alt, _ in USES)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_brings_its_own_ground_and_is_read_on_it(picture: Path) -> None:
    """It covers the page's, light or dark, and its text has the contrast of WCAG AA."""
    root = ET.parse(picture).getroot()
    ground = next(iter(root.iter(f"{SVG}rect")))
    width, height = root.attrib["viewBox"].split()[2:]
    assert (ground.attrib["width"], ground.attrib["height"]) == (width, height)
    text = {
        group.attrib["fill"]
        for group in root.iter(f"{SVG}g")
        if group.find(f"{SVG}text") is not None and "fill" in group.attrib
    }
    fills = {one.attrib["fill"] for one in root.iter() if one.attrib.get("fill", "none") != "none"} - text
    assert len(text) == 1
    assert min(contrast(*text, fill) for fill in fills) >= 4.5
    assert root.find(f"{SVG}title") is not None


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_small_and_loads_nothing(picture: Path) -> None:
    content = picture.read_text()
    assert len(content) < 6000
    assert not re.search(r"<script|<image|href=|@import|url\((?!#)", content)


#: All commands and records are read for it.
SLOW = "json.schema.json"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.name, marks=pytest.mark.system if page.name == SLOW else ())
        for page in GENERATED
    ],
)
def test_page_is_up_to_date(page: Path) -> None:
    assert page.read_text() == GENERATED[page](), "run make reference"


# -- Every line of the tables in docs/security.md and docs/failures.md names tests, which are there.
SECURITY = CHECKOUT / "docs" / "security.md"
FAILURES = CHECKOUT / "docs" / "failures.md"
#: What the table of security has room for, in lines and in characters of two screens.
_TWO_SCREENS = 100, 8_000
#: Who is to be in it.
_WHO = (
    *("no account", "an account without role", "a reader", "an administrator of one cluster"),
    *("a local user", "a plugin", "a program with a token", "the engine"),
)
_COMMENT = re.compile(r"<!--(.*?)-->")
_LINE_BELOW = "| ---"
_DEFINITION = re.compile(r"^ *(?:async )?def (test_\w+)\(", re.MULTILINE)


def rows(page: Path) -> Iterator[str]:
    """All lines of tables but their heads."""
    lines = page.read_text().splitlines()
    for line, after in pairwise([*lines, ""]):
        is_head = _LINE_BELOW in (line[:5], after[:5])
        if line.startswith("|") and not is_head:
            yield line


def named_in(row: str) -> list[str]:
    return [name for comment in _COMMENT.findall(row) for name in comment.split()]


@cache
def defined(file: Path) -> frozenset[str]:
    """The tests of a file, those of classes with the name of their class."""
    body = ast.parse(file.read_text()).body
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    found = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    found |= {
        f"{one.name}::{node.name}"
        for one in classes
        for node in one.body
        if isinstance(node, ast.FunctionDef)
    }
    return frozenset(name for name in found if name.rpartition("::")[2].startswith("test_"))


def is_there(test: str) -> bool:
    path, _, name = test.partition("::")
    file = CHECKOUT / path
    return file.is_file() and name in defined(file)


@cache
def names_of_tests() -> frozenset[str]:
    """Those of all tests, without where they are."""
    files = (CHECKOUT / "tests").rglob("test_*.py")
    return frozenset(found for file in files for found in _DEFINITION.findall(file.read_text()))


def title(row: str) -> str:
    return " ".join(row.split("|")[1:3]).strip()


@pytest.mark.parametrize("row", list(rows(FAILURES)), ids=title)
def test_each_line_of_failures_is_backed_by_tests_that_are_there(row: str) -> None:
    named = named_in(row)
    assert named
    assert [test for test in named if not is_there(test)] == []


@pytest.mark.parametrize("row", list(rows(SECURITY)), ids=title)
def test_each_line_of_security_names_tests_that_are_there_and_where_they_run(row: str) -> None:
    *_, shown, end = row.split("|")
    assert end == ""
    words = shown.split()
    tests = [word.strip("`") for word in words if word.startswith("`")]
    assert tests
    assert [test for test in tests if test not in names_of_tests()] == []
    assert {word for word in words if not word.startswith("`")} <= {"P", "T", "A"}


def test_security_fits_two_screens_and_speaks_of_everybody() -> None:
    text = SECURITY.read_text()
    assert len(text.splitlines()) <= _TWO_SCREENS[0]
    assert len(text) <= _TWO_SCREENS[1]
    who = [row.split("|")[1].strip() for row in rows(SECURITY)]
    assert [one for one in _WHO if not any(each.startswith(one) for each in who)] == []
    assert {"P", "T", "A"} <= {*text.split()}


def test_there_are_lines() -> None:
    assert len(list(rows(FAILURES))) > 25
    assert len(list(rows(SECURITY))) > 15
