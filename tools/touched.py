"""What of the nightly suite the changed files touch, for `.ci/run`: `python -m tools.touched`.

Prints folders and files of tests, those that matter most first, and says on standard error what it went by.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from tests.paths import CHECKOUT

#: How many commits count as changed where nothing says what was tested last.
_COMMITS = 10
#: Where nothing is known: what has found most in few minutes.
_ALWAYS = ("tests/placement/rules", "tests/placement/planning", "tests/tools")
#: Files by how their paths begin, and what else has tests of them than the folder that mirrors theirs.
_CONCERN = {
    "packaging/ansible/": ("tests/integration/test_ansible_ours.py", "tests/packages/rpm/test_roles.py"),
    "packaging/": ("tests/packages",),
    "release/": ("tests/release",),
    "setup.": ("tests/packages", "tests/release"),
    "simulator/": ("tests/clients",),
    "proxy/": ("tests/contract", "tests/endurance/test_soak.py"),
    "plugins/": ("tests/plugins", "tests/contract"),
    "placement/ovirt_placement/rules/": ("tests/integration",),
    "placement/ovirt_placement/planning/": ("tests/integration", "tests/enforcer/safety"),
    "placement/ovirt_placement/units/": ("tests/plugins", "tests/integration", "tests/placement/inventory"),
    "placement/ovirt_placement/store/": ("tests/enforcer/leaders",),
    "enforcer/": ("tests/enforcer/faults/test_faults.py", "tests/integration/test_two_administrators.py"),
    "docs/developers/": ("tests/developers",),
    "docs/": ("tests/docs", "tests/release/test_site.py"),
    "demo/": ("tests/integration/test_demo.py",),
    "tools/": ("tests/tools",),
}
_PACKAGES = ("placement", "proxy", "enforcer", "web", "simulator", "service")


class Base(NamedTuple):
    commit: str
    reason: str


def main() -> int:
    base = find_base()
    changed = [] if base is None else [*changed_since(base.commit)]
    said = "No history is known here; what always counts is run."
    if base is not None:
        said = f"{len(changed)} files have changed since {base.commit[:12]}, {base.reason}."
    print(said, file=sys.stderr)
    print(*(choose(changed) or _ALWAYS), sep="\n")
    return 0


def find_base() -> Base | None:
    """The last commit that counts as tested."""
    if (named := os.environ.get("BASE")) and (commit := _git("rev-parse", "--verify", f"{named}^{{commit}}")):
        return Base(commit, "as BASE says")
    head = _git("rev-parse", "--verify", "HEAD")
    if not head:
        return None
    for branch in ("origin/HEAD", "origin/main", "main"):
        forked = _git("merge-base", "HEAD", branch)
        if forked and forked != head:
            return Base(forked, f"where it left {branch}")
    count = int(_git("rev-list", "--count", "--first-parent", "HEAD"))
    earlier = _git("rev-parse", "--verify", f"HEAD~{min(_COMMITS, count - 1)}")
    return Base(earlier, f"{min(_COMMITS, count - 1)} commits ago") if earlier else None


def changed_since(commit: str) -> Iterator[str]:
    """What differs from a commit in the working tree, with files that are not committed."""
    yield from _git("diff", "--name-only", "--no-renames", commit).splitlines()
    yield from _git("ls-files", "--others", "--exclude-standard").splitlines()


def choose(changed: list[str]) -> list[str]:
    """Tests by how many changed files they concern; none that another one of them holds."""
    weights: Counter[str] = Counter()
    for file in changed:
        concerned = (tests for beginning, tests in _CONCERN.items() if file.startswith(beginning))
        weights.update({*_mirrors(file), *chain.from_iterable(concerned)})
    ordered = sorted(weights, key=lambda tests: (-weights[tests], tests))
    return [tests for tests in ordered if not any(tests.startswith(f"{other}/") for other in ordered)]


def _mirrors(file: str) -> Iterator[str]:
    """A test itself; and the folder below tests/ that mirrors that of a module, or the nearest above it."""
    parts = file.split("/")
    if parts[0] == "tests":
        if parts[-1].startswith("test_") and (CHECKOUT / file).exists():
            yield file
    elif parts[0] in _PACKAGES and len(parts) > 2:
        folder = ["tests", parts[0], *parts[2:-1]]
        while not (CHECKOUT.joinpath(*folder)).is_dir():
            folder.pop()
        if len(folder) > 1:
            yield "/".join(folder)


def _git(*words: str) -> str:
    """What git says, or nothing where it fails or there is none."""
    try:
        done = subprocess.run(["git", *words], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main())
