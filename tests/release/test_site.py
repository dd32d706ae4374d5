"""The documentation site: all pages, every link, and nothing that a machine without a network would lack."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from release.artifacts import build_site
from tests.docs.test_pages import PAGES
from tests.paths import CHECKOUT

MISTAKEN = {
    "README.md": "# It\n\n[A page](docs/page.md)\n",
    "docs/index.md": "# Documentation\n\n## Start\n\n- [It](../README.md)\n- [A page](page.md): first\n",
    "docs/page.md": "# A page\n\n## A, b\n\n[good](#a-b) [bad](#no-heading) [worse](nowhere.md)\n",
    "docs/lost.md": "# In no group\n",
}


class Resources(HTMLParser):
    """What a page makes a browser load by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            loads = name in ("src", "srcset", "poster", "data") or (name == "href" and tag in ("link", "use"))
            if loads and value:
                self.urls.append(value)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_site(tmp_path_factory.mktemp("site"))


def strangers(folder: Path) -> Iterator[str]:
    """What pages and styles load from elsewhere."""
    for file in folder.rglob("*.html"):
        page = Resources()
        page.feed(file.read_text(encoding="utf-8"))
        yield from (url for url in page.urls if re.match(r"([a-z]+:)?//", url))
    for file in folder.rglob("*.css"):
        found = re.findall(r"(?:url\(|@import)\s*[\"']?([^\"')\s]+)", file.read_text(encoding="utf-8"))
        yield from (url for url in found if re.match(r"([a-z]+:)?//", url))


@pytest.mark.system
def test_mistakes_fail_the_build(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, text in MISTAKEN.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    shutil.copy(CHECKOUT / "setup.cfg", tmp_path)
    with pytest.raises(subprocess.CalledProcessError):
        build_site(tmp_path / "out", tmp_path)
    complaints = capfd.readouterr().err
    assert "no-heading" in complaints
    assert "nowhere.md" in complaints
    assert "docs/lost.md: WARNING: document isn't included in any toctree" in complaints
    assert complaints.count("WARNING") == 3


@pytest.mark.nightly
def test_every_page_is_there(site: Path) -> None:
    pages = {page.relative_to(CHECKOUT).with_suffix(".html") for page in PAGES}
    assert {page for page in pages if not (site / page).is_file()} == set()
    assert 'url=docs/index.html"' in (site / "index.html").read_text()


@pytest.mark.nightly
def test_nothing_is_loaded_from_elsewhere(site: Path, tmp_path: Path) -> None:
    assert list(strangers(site)) == []
    (tmp_path / "page.html").write_text(
        '<link href="https://a.example/x.css"><script src="//b.example/x.js">'
    )
    (tmp_path / "style.css").write_text("@import 'http://c.example/x.css'; p { src: url(fonts/here.woff) }")
    assert list(strangers(tmp_path)) == [
        "https://a.example/x.css",
        "//b.example/x.js",
        "http://c.example/x.css",
    ]


@pytest.mark.nightly
def test_it_is_searched_without_a_server(site: Path, chromium: Browser) -> None:
    """From its files alone; whatever a browser asks for is one of them."""
    asked: list[str] = []
    with chromium.new_context() as visitor:
        page = visitor.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{site.as_uri()}/index.html")
        page.wait_for_url("**/docs/index.html")
        captions = page.locator(".sidebar-tree .caption-text").all_text_contents()
        page.goto(f"{site.as_uri()}/search.html?q=fapolicyd")
        first = page.locator("#search-results ul.search a").first.text_content()
    assert captions == ["Start", "Use", "Operate", "Reference", "Develop"]
    assert first == "Hardened hosts"
    assert [url for url in asked if not url.startswith((site.as_uri(), "data:"))] == []
