"""Carries out a walk-through of `docs/developers` on a copy of the tree: the page is the only source.

A block of code belongs to the file that the paragraph before it names last. A block in `diff` changes that
file in one place; any other block is the whole file.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: What a walk-through may change or need.
_PACKAGES = ("service", "placement", "proxy", "enforcer", "simulator")
_FOLDERS = (*_PACKAGES, "plugins", "tests", "tools", "docs")
_BLOCK = re.compile(r"((?:[^\n]+\n)+)\n```(\w+)\n(.*?)```\n", re.DOTALL)
_FILE = re.compile(r"`([\w/.-]+/[\w.-]+\.\w+)`")


@dataclass(frozen=True)
class Block:
    """One block of code of a page."""

    file: str
    change: bool
    text: str

    def apply(self, tree: Path) -> None:
        """Do to the file what the page says."""
        path = tree / self.file
        if not self.change:
            assert not path.exists(), f"{self.file} is there already"
            path.write_text(self.text, "utf-8")
            return
        old, before, after = path.read_text("utf-8"), self._side("-"), self._side("+")
        assert old.count(before) == 1, f"{self.file} does not have this once:\n{before}"
        path.write_text(old.replace(before, after), "utf-8")

    def _side(self, sign: str) -> str:
        return "".join(line[1:] for line in self.text.splitlines(keepends=True) if line[0] in {" ", sign})


def read(page: str) -> list[Block]:
    """The blocks of `docs/developers/PAGE` that belong to files, in order."""
    text = (ROOT / "docs" / "developers" / page).read_text("utf-8")
    return [
        Block(files[-1], language == "diff", code)
        for paragraph, language, code in _BLOCK.findall(text)
        if (files := _FILE.findall(paragraph))
    ]


def carry_out(blocks: Iterable[Block], tree: Path, wanted: Callable[[Block], bool] = lambda _: True) -> Path:
    """Copy the source to `tree` and do there what the wanted blocks say."""
    for folder in _FOLDERS:
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__", "data"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    for block in filter(wanted, blocks):
        block.apply(tree)
    return tree


def run(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the copy's packages in place of ours."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(tree / package) for package in _PACKAGES)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def run_tests(tree: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests of the copy."""
    return run(tree, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests)
