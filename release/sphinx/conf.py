"""How Sphinx reads the pages: as GitHub does, in the groups of docs/index.md."""

import re
from collections.abc import Iterator

from sphinx.application import Sphinx

project = "ovirt-placement"
author = "the authors of ovirt-placement"
root_doc = "docs/index"
extensions = ["myst_parser"]
#: Headings have the names that GitHub gives them, down to this level.
myst_heading_anchors = 4
#: What a page shows of a shell has no language that Pygments could doubt.
highlight_language = "text"
html_theme = "furo"
html_title = project
html_extra_path = ["index.html"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
#: No page has a time in it: the same pages make the same site.
html_last_updated_fmt = None

_GROUP = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_PAGE = re.compile(r"^- \[([^\]]+)\]\(([^)#]+)\.md\)", re.MULTILINE)


def setup(app: Sphinx) -> None:
    app.connect("source-read", _add_contents)


def _add_contents(app: Sphinx, page: str, text: list[str]) -> None:
    """Give the index the tables of contents that the navigation is made of; GitHub shows the lists alone."""
    if page == root_doc:
        text[0] += "".join(_contents(text[0]))


def _contents(index: str) -> Iterator[str]:
    for group in _GROUP.finditer(index):
        pages = "\n".join(f"{title} <{page}>" for title, page in _PAGE.findall(group[2]))
        yield f"\n```{{toctree}}\n:hidden:\n:caption: {group[1]}\n\n{pages}\n```\n"
