"""Answers to what administrators ask: data in, data out. Commands print them; pages may render them."""

import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

#: Where a question stands in the source: its name and its summary are literals, so that a list of all
#: questions needs none of their modules, which take long to load.
_DECLARED = re.compile(r'^ *@question\(\s*"([a-z -]+)",\s*"([^"\n]+)",', re.MULTILINE)


@cache
def summaries(package: ModuleType = sys.modules[__name__]) -> Mapping[str, tuple[str, str]]:
    """Of each question of a package, by its name, the summary and the module."""
    found = {}
    for folder in map(Path, package.__path__):
        for file in folder.rglob("*.py"):
            for name, summary in _DECLARED.findall(file.read_text(encoding="utf-8")):
                place = (package.__name__, *file.relative_to(folder).with_suffix("").parts)
                found[name] = summary, ".".join(place).removesuffix(".__init__")
    return found
