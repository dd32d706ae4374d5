"""The stylesheet that the page brings: all that its templates use of PatternFly, and little more."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

WEB = Path(str(files("ovirt_placement_web")))
VENDOR = WEB / "static" / "vendor"


def test_the_bundle_has_each_class_that_templates_use_and_is_small() -> None:
    sources = [*WEB.glob("templates/*.html"), *WEB.glob("static/*.js")]
    used = set(re.findall(r"pf-v6-c-[a-z-]*[a-z](?=[ \"_])", "".join(file.read_text() for file in sources)))
    sheet = (VENDOR / "patternfly.css").read_text()
    own = (WEB / "static" / "page.css").read_text()
    assert {one for one in used if f".{one}" not in sheet} == set()
    assert sum(file.stat().st_size for file in VENDOR.iterdir()) <= 300 * 1024
    fonts = re.findall(r'url\("([^"]+)"\)', own)
    assert fonts
    assert all((WEB / "static" / font).is_file() for font in fonts)
    assert "url(" not in sheet
