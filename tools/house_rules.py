"""Checks the rules of the house for files, folders and names: `python -m tools.house_rules`.

What violates one stands by name in `house_rules.txt`, or is reported; what stands there and violates none is
reported as well, so that the list only gets shorter.
"""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).parent.parent
EXCEPTIONS: Final = Path(__file__).with_suffix(".txt")
#: Folders whose files are modules below them, and packages that lie in the checkout itself.
ROOTS: Final = ("service", "placement", "proxy", "enforcer", "web", "simulator")
PACKAGES: Final = ("demo", "plugins", "release", "tools")
#: A shorter file is a part of what imports it, unless several do.
FEWEST_LINES: Final = 60
MOST_FILES: Final = 12
#: Alone they say nothing of what a function does, or with what; `read`, `send`, `start` and their like do.
COMMON_VERBS: Final = frozenset(
    [
        *("ask", "begin", "bring", "come", "do", "end", "fill", "find", "get", "give", "go", "have", "hold"),
        *("keep", "leave", "let", "look", "make", "meet", "move", "of", "over", "pass", "put", "say", "see"),
        *("set", "show", "stand", "stay", "take", "try", "turn", "use"),
    ]
)
#: They belong to their folder, whatever their length.
_OF_FOLDERS: Final = ("__init__", "__main__")
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)


def violations(checkout: Path) -> Iterator[str]:
    """Each thing that violates a rule, as a line of the list of exceptions."""
    files = {**_modules(checkout, checkout, PACKAGES)}
    for root in ROOTS:
        files.update(_modules(checkout / root, checkout, (f"{root}/",)))
    trees = {name: ast.parse(file.read_bytes()) for name, file in files.items()}
    importers = _importers(trees)
    folders = Counter(file.parent for file in files.values() if file.stem not in _OF_FOLDERS)
    for name, file in files.items():
        shown = file.relative_to(checkout).as_posix()
        short = len(file.read_bytes().splitlines()) < FEWEST_LINES
        if short and len(importers[name]) == 1 and file.stem not in _OF_FOLDERS:
            yield f"short file {shown}"
        named = (node for node in ast.walk(trees[name]) if isinstance(node, _FUNCTIONS))
        for function in {node.name for node in named}:
            if function.startswith("_") and function[1:] in COMMON_VERBS:
                yield f"common verb {shown} {function}"
    for folder, count in folders.items():
        if count > MOST_FILES:
            yield f"large folder {folder.relative_to(checkout).as_posix()}"


def _modules(root: Path, checkout: Path, within: tuple[str, ...]) -> dict[str, Path]:
    """The files below a root by their dotted names; those of a package by the name of the package."""
    found = {}
    for file in sorted(root.rglob("*.py")):
        if file.relative_to(checkout).as_posix().startswith(tuple(f"{one.rstrip('/')}/" for one in within)):
            parts = file.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def _importers(trees: Mapping[str, ast.Module]) -> Mapping[str, set[str]]:
    """By module, the others that import it or something of it."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name, tree in trees.items():
        for node in ast.walk(tree):
            imported: list[str] = []
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                whole = [f"{node.module}.{alias.name}" for alias in node.names]
                imported = [one if one in trees else node.module for one in whole]
            for one in imported:
                found[one].add(name)
    return found


def main() -> int:
    """Report what violates a rule without standing in the list, and the other way round."""
    known = {*EXCEPTIONS.read_text().splitlines()}
    found = {*violations(CHECKOUT)}
    for line in sorted(found - known):
        sys.stdout.write(f"{line}: see CONTRIBUTING.md\n")
    for line in sorted(known - found):
        sys.stdout.write(f"{line}: violates no rule any more: take it out of {EXCEPTIONS.name}\n")
    return int(found != known)


if __name__ == "__main__":
    sys.exit(main())
