"""`make site`: the documentation as HTML, from the Markdown that is in the tree; no page needs a network."""

import shutil
import subprocess
import sys
from pathlib import Path

from release import CHECKOUT, version

#: Where `make site` builds.
PLACE = CHECKOUT / ".work" / "site"
_SETTINGS = Path(__file__).with_name("sphinx")
#: What pages are made from, and the files that they link to; Sphinx would search all of a checkout.
_SOURCES = ("*.md", "LICENSE", "docs/**/*", "packaging/*.toml")


def build(place: Path, checkout: Path = CHECKOUT) -> Path:
    """Build below `place`, and return the folder of the HTML.

    Raises `CalledProcessError` at the end if a link of a page leads to no page, file or heading, or a page is
    in no group of docs/index.md.
    """
    source, html = place / "source", place / "html"
    for made in (source, html):
        shutil.rmtree(made, ignore_errors=True)
    _copy_sources(checkout, source)
    settings = ("-b", "html", "-c", _SETTINGS, "-D", f"release={version(checkout)}")
    strict = ("--fail-on-warning", "--nitpicky", "--quiet")
    command = (sys.executable, "-m", "sphinx", *settings, *strict, "-d", place / "read", source, html)
    subprocess.run(command, check=True)
    return html


def _copy_sources(checkout: Path, source: Path) -> None:
    for pattern in _SOURCES:
        for file in checkout.glob(pattern):
            if file.is_file():
                place = source / file.relative_to(checkout)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place)


if __name__ == "__main__":
    try:
        print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else PLACE) / "index.html")
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
