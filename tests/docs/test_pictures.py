"""Pictures of pages: small, readable on a light and on a dark page, and said in words besides."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.docs.test_links import PAGES
from tests.paths import CHECKOUT

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
