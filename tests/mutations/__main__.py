"""Types slips into copies of the project, one at a time, and finds out which test notices each.

Slips are data, in `slips/*.toml`. Of each, the tests near its place run first, then
the quick suite, then those of the system suite near it. Ends with 1 if one is not noticed.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tests.paths import CHECKOUT

SLIPS = Path(__file__).with_name("slips")
QUICK = "not system and not nightly and not timing"
SYSTEM = "system and not nightly and not timing"
SOURCES = ("service", "placement", "proxy", "enforcer", "web", "simulator")
#: A slip can make a test wait for ever: that notices it, too.
_PYTEST = (
    *("-x", "-q", "-p", "no:cacheprovider", "--timeout", "120", "--hypothesis-seed", "0"),
    "--ignore=tests/mutations",
)
#: Without its parameters, which may hold anything.
_FAILED = re.compile(r"^(?:FAILED|ERROR) ([^\s\[]+)", re.MULTILINE)
#: What pytest-timeout writes of the test that it ends with the whole run.
_HANGS = re.compile(r"^  File \"[^\"]*/(tests/\S+)\", line \d+, in (test_\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Slip:
    """A text that stands once in a file or below a folder, and what is typed in its place."""

    place: str
    old: str
    new: str
    why: str
    #: Where its tests are, if not where its folder says.
    tests: tuple[str, ...]

    def file(self, checkout: Path) -> Path:
        """The file with the text; raises `ValueError` unless it stands in one, once."""
        place = checkout / self.place
        files = [place] if place.is_file() else sorted(place.rglob("*.py"))
        found = [(file, file.read_text().count(self.old)) for file in files]
        holding = [(file, count) for file, count in found if count]
        if [count for _, count in holding] != [1]:
            where = ", ".join(f"{file.relative_to(checkout)} ({count})" for file, count in holding)
            raise ValueError(
                f"to stand once below {self.place}: {self.old!r}; it stands in {where or 'none'}"
            )
        return holding[0][0]

    def near(self, checkout: Path) -> list[tuple[str, ...]]:
        """Tests ever further from the file: those of its own name, of its folder, and of those above."""
        file = self.file(checkout).relative_to(checkout)
        component, *rooms = (
            file.parts[:1] if file.parts[0] == "plugins" else (file.parts[0], *file.parts[2:-1])
        )
        below = Path("tests", component)
        chain = [below.joinpath(*rooms, f"test_{file.stem}.py"), below.joinpath(*rooms)]
        chain += [one for one in chain[-1].parents if below in one.parents]
        found = [(str(one),) for one in chain if (checkout / one).exists()]
        return [*([self.tests] if self.tests else []), *found]


def read_slips(folder: Path = SLIPS) -> Iterator[tuple[str, Slip]]:
    """All slips, with their rooms."""
    for file in sorted(folder.glob("*.toml")):
        for room, slips in tomllib.loads(file.read_text()).items():
            for one in slips:
                yield room, Slip(one["in"], one["old"], one["new"], one["why"], tuple(one.get("tests", ())))


def noticed_by(checkout: Path, tests: Sequence[str], marks: str) -> str | None:
    """The first test that fails; None if none does."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        "PYTHONPATH": os.pathsep.join(str(checkout / source) for source in SOURCES),
    }
    command = (str(checkout / ".venv/bin/python"), "-m", "pytest", *_PYTEST, "-m", marks, *tests)
    run = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True)
    if run.returncode in (0, 5):  # all passed, or there is none with these marks
        return None
    if failed := _FAILED.search(run.stdout):
        return failed[1]
    if hangs := _HANGS.findall(run.stdout + run.stderr):
        return "::".join(hangs[-1])
    raise RuntimeError(f"pytest ended with {run.returncode}: {run.stdout[-2000:]}{run.stderr[-2000:]}")


def judge(slip: Slip, checkout: Path) -> str | None:
    """The test that notices a slip in a copy, which is as before afterwards.

    One that fails without the slip as well notices nothing.
    """
    file = slip.file(checkout)
    text, near = file.read_text(), slip.near(checkout)
    steps = [*((tests, QUICK) for tests in near), (("tests",), QUICK), *((tests, SYSTEM) for tests in near)]
    for tests, marks in steps:
        others: tuple[str, ...] = ()
        while True:
            file.write_text(text.replace(slip.old, slip.new))
            test = noticed_by(checkout, (*tests, *others), marks)
            file.write_text(text)
            if test is None:
                break
            if noticed_by(checkout, (test,), marks) is None:
                return test
            print(f"fails without any slip: {test}", flush=True)
            others = (*others, "--deselect", test)
    return None


def copy_to(folder: Path) -> Path:
    listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listed, cwd=CHECKOUT, capture_output=True, check=True).stdout.decode().split("\0")
    for name in filter(None, names):
        if (CHECKOUT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(CHECKOUT / name, folder / name, follow_symlinks=False)
    (folder / ".venv").symlink_to(CHECKOUT / ".venv")
    return folder


def main(arguments: Iterable[str]) -> int:
    parser = argparse.ArgumentParser(prog="make mutations", description=__doc__)
    parser.add_argument("words", nargs="*", help="only slips whose room, place or text has one of these")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    options = parser.parse_args([*arguments])
    slips = [
        (room, slip)
        for room, slip in read_slips()
        if not options.words or any(word in f"{room} {slip.place} {slip.old}" for word in options.words)
    ]
    free: SimpleQueue[Path] = SimpleQueue()

    def judged(named: tuple[str, Slip]) -> bool:
        room, slip = named
        checkout, began = free.get(), time.monotonic()
        try:
            test = judge(slip, checkout)
            said = f"noticed by {test}" if test else f"NOT NOTICED, though {slip.why}"
        except ValueError as error:
            test, said = None, f"NOT TRIED: {error}"
        finally:
            free.put(checkout)
        print(
            f"{room}: {slip.old.strip()!r} -> {slip.new.strip()!r}: {said}; {time.monotonic() - began:.0f} s",
            flush=True,
        )
        return test is not None

    with (
        tempfile.TemporaryDirectory(prefix="mutations-") as scratch,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        for number in range(options.jobs):
            folder = Path(scratch, str(number))
            folder.mkdir()
            free.put(copy_to(folder))
        results = list(pool.map(judged, slips))
    print(f"{sum(results)} of {len(results)} slips were noticed.")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
