"""Runs commands one after another, each in a fork that has loaded all that it needs.

A line of JSON on standard input is one command: its words, its environment, whether it is a service, which
is ended once it says that it is ready, and where in its writing it is killed, if it is. The answer is a line
with its process, its status, and what it said.
"""

import json
import os
import pkgutil
import resource
import signal
import sys
import traceback
from importlib import import_module
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any

from sqlalchemy import Engine, event

import ovirt_enforcer
import ovirt_placement
import ovirt_placement_web
import ovirt_service

MAINS = {
    "ovirt-placement": "ovirt_placement.cli.main",
    "ovirt-enforcer": "ovirt_enforcer.cli.main",
    "ovirt-placement-web": "ovirt_placement_web.cli",
    "ovirt-scheduler-proxy": "ovirt_scheduler_proxy.cli",
}

#: What these load by themselves, and only when they need it.
LAZY = (
    "sqlalchemy.dialects.sqlite",
    "sqlalchemy.dialects.postgresql.psycopg",
    "rich.table",
    "rich.text",
    "multiprocessing.forkserver",
)


def load(package: ModuleType) -> None:
    """The user that root becomes may not read the interpreter that the tests run by."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        import_module(module.name)


def die(statement: int, seconds: float) -> None:
    """End as by SIGKILL so long after the numbered statement that writes, which 0 is the end of none."""
    numbers = count(1)

    def before(connection: Any, cursor: Any, text: str, *others: Any) -> None:
        writes = text.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE", "CREATE"))
        if writes and next(numbers) == statement:
            if not seconds:
                os.kill(os.getpid(), signal.SIGKILL)
            signal.setitimer(
                signal.ITIMER_REAL, seconds
            )  # SIGALRM, which nothing here handles, kills as well

    event.listen(Engine, "before_cursor_execute", before)


def be(words: list[str], environment: dict[str, str], said: int, complained: int) -> None:
    os.dup2(said, 1)
    os.dup2(complained, 2)
    os.environ.update(environment)
    sys.stdout = open(1, "w", buffering=1, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    main = import_module(MAINS[words[0]]).main
    status = 70
    try:
        status = main(words[1:])
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def run(
    words: list[str],
    environment: dict[str, str],
    is_service: bool,
    log: Path,
    deadly: tuple[int, float] | None,
) -> tuple[int, int, str]:
    read, written = os.pipe()
    complaints = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    child = os.fork()
    if child == 0:
        if deadly is not None:
            die(*deadly)
        be(words, environment, written, complaints)
    os.close(written)
    os.close(complaints)
    with open(read) as output:
        said = output.readline()
        if is_service:
            os.kill(child, signal.SIGTERM)
        said += output.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return child, status, said + log.read_text()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for one in (ovirt_service, ovirt_placement, ovirt_enforcer, ovirt_placement_web):
        load(one)
    for name in LAZY:
        import_module(name)
    print(flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        answer = run(
            asked["words"], asked["environment"], asked["service"], Path(asked["log"]), asked["kill"]
        )
        print(json.dumps(answer), flush=True)
