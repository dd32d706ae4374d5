"""Questions about state files, and commands that answer them in this process.

Each state is asked what it costs little to ask; every fourth question is asked for
JSON, so that the records hold each command's document with many kinds of answers.
"""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_placement.cli.main import main as placement
from ovirt_placement.model import Snapshot, state_file
from tests.golden.recorded import Answer
from tests.paths import CHECKOUT, DATA

MAIN = {"ovirt-enforcer": enforcer, "ovirt-placement": placement}
#: States by the names that questions give them.
STATES: dict[str, Path] = {
    "first-look": CHECKOUT / "docs" / "first-look.json",
    **{file.stem: file for file in sorted((DATA / "cases").glob("*.json"))},
    **{file.parent.name: file for file in sorted((CHECKOUT / "tests" / "scenarios").glob("*/state.json"))},
}
#: Asked of every state.
_EACH = (
    "ovirt-placement violations",
    "ovirt-placement why VM",
    "ovirt-placement where VM",
    "ovirt-placement ha-check",
    "ovirt-enforcer plan",
)
#: Asked of every second state.
_IN_TURN = (
    "ovirt-placement status",
    "ovirt-placement conflicts",
    "ovirt-placement groups list",
    "ovirt-placement what-if --maintenance HOST",
    "ovirt-placement what-if --down HOST",
    "ovirt-placement why VM HOST",
    "ovirt-placement rules list",
    "ovirt-placement keys list",
    "ovirt-placement keys explain VM",
    "ovirt-placement keys show VM",
    "ovirt-placement ha-check --steps 2",
    "ovirt-enforcer status",
    "ovirt-enforcer make-room VM",
    "ovirt-enforcer maintenance plan HOST",
    "ovirt-enforcer simulate-policy",
    "ovirt-enforcer plan --repair soft",
)


def lines(name: str) -> Iterator[str]:
    """The questions asked of a state: command lines, but for the state."""
    number = crc32(name.encode())  # of a new state nothing hangs on where it stands in the list
    state = state_file.loads(STATES[name].read_bytes())
    for place, line in enumerate((*_EACH, *_IN_TURN)):
        if place < len(_EACH) or (place + number) % 2 == 0:
            yield _named(line, state, number) + (" --json" if (place + number // 2) % 4 == 0 else "")


def _named(line: str, state: Snapshot, number: int) -> str:
    """A question with names of the state in it."""
    names = {"VM": [vm.name for vm in state.vms], "HOST": [host.name for host in state.hosts]}
    return " ".join(
        names[word][number % len(names[word])] if word in names else word for word in line.split()
    )


def ask(line: str, *more: str) -> Answer:
    """Run a command line in this process."""
    command, *words = line.split()
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            status = MAIN[command]([*words, *more])
        except SystemExit as end:  # argparse ends the process
            status = int(end.code or 0)
    return Answer(line, status, printed.buffer.getvalue().decode())  # type: ignore[attr-defined]


def answers(name: str) -> Iterator[tuple[str, Answer]]:
    """The answers about a state, each with the name of the file that it stands in."""
    for line in lines(name):
        found = ask(line, "--state", str(STATES[name]))
        command, action = line.split()[:2]
        yield (
            action if command == "ovirt-placement" else f"enforcer-{action}",
            found._replace(question=f"{line} --state {name}"),
        )
