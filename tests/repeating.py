"""Something that goes on besides a test, in a thread of its own."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeating(deed: Callable[[], object], every: float) -> Iterator[None]:
    """Do something again and again, this many seconds after it was last done, until the block ends."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(every):
            deed()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
