"""A thread that never begins ends its process, which is started again, rather than to hang."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ovirt_service.errors import EXIT_STATUS
from ovirt_service.process import BackgroundThread

#: As a thread is that the system has, and that lacks the memory for its first step: nothing comes of it.
NOTHING_COMES_OF_IT = """
import threading
import ovirt_service.process as threads
threads._LOOK_SECONDS = 0.01
for starts in ("_start_new_thread", "_start_joinable_thread"):
    setattr(threading, starts, lambda *arguments, **named: 1)
threads.BackgroundThread(target=print).start()
print("went on")
"""
#: As the system refuses one.
REFUSED = NOTHING_COMES_OF_IT.replace(
    "lambda *arguments, **named: 1",
    "lambda *arguments, **named: exec('raise RuntimeError(\"can\\'t start new thread\")')",
)


@pytest.mark.parametrize("program", [NOTHING_COMES_OF_IT, REFUSED], ids=["never begins", "refused"])
def test_a_process_whose_thread_does_not_begin_ends(program: str) -> None:
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (EXIT_STATUS, "")
    assert ended.stderr == "out of memory, or of threads: ends, as nothing can be relied on any more\n"


def test_one_that_begins_works_and_holds_up_no_end() -> None:
    done: list[str] = []
    thread = BackgroundThread(target=done.append, args=("work",), name="worker")
    thread.start()
    thread.join()
    assert (done, thread.name, thread.daemon) == (["work"], "worker", True)
