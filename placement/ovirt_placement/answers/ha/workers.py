"""Spreads the work of a check over processes of this machine, or over the workers of a Dask cluster.

Failures go out in lumps, and what came of them is taken in their order: so the answer does not depend on who
works. A lump that a lost worker had is done by another one.
"""

from __future__ import annotations

import sys
import warnings
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from ovirt_placement.rules.failover.check import CheckQuestion, Spread
from ovirt_placement.rules.failover.measures import ExaminationTask, Examined, Examiner, Measure, examine
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from distributed import Client

#: Each worker has about this many lumps to do: the last ones leave few idle for long.
_LUMPS_A_WORKER = 8
_LARGEST_LUMP = 500
#: So often the pool of processes is made again after one of them was lost.
_MOST_LOSSES = 3
#: How long a scheduler may take to answer.
_CONNECT_SECONDS = 10

#: Does the lumps somewhere, and gives what came of them in order.
_Pool = Callable[[bytes, Sequence[Sequence[ExaminationTask]]], Iterator[list[Examined]]]


@contextmanager
def spreading(processes: int | None, scheduler: str | None) -> Iterator[Spread | None]:
    """Say who does the work: this many processes, a Dask cluster by its address, or None: the process itself.

    Raises `UserError` if there is no such scheduler, or if processes are lost again and again.
    """
    if scheduler is not None:
        with _connected(scheduler) as client:
            yield lambda question: _lump_wise(question, _workers_of(client), _on_cluster(client))
    elif processes is not None and processes > 1:
        try:
            yield lambda question: _lump_wise(question, processes, _in_processes(processes))
        finally:
            _end_processes()
    else:
        yield None


def examine_lump(encoded: bytes, tasks: Sequence[ExaminationTask]) -> list[Examined]:
    """Examine failures one by one: what a worker does.

    It ends where nothing is asked any more, since the steps of the whole question are taken.
    """
    question, measure = _understood(encoded)
    found: list[Examined] = []
    left = question.steps
    for task in tasks:
        if left < 0:
            break
        found.append(examine(measure, task, question.steps))
        left -= found[-1].steps
    return found


@lru_cache(maxsize=2)  # by starts, and by the engine's own check
def _understood(encoded: bytes) -> tuple[CheckQuestion, Measure]:
    question = msgspec.msgpack.decode(zlib.decompress(encoded), type=CheckQuestion)
    return question, question.measure()


def _lump_wise(question: CheckQuestion, workers: int, pool: _Pool) -> Examiner:
    encoded = zlib.compress(msgspec.msgpack.encode(question), 1)

    def examiner(tasks: Iterable[ExaminationTask]) -> Iterator[Examined]:
        todo = list(tasks)
        size = min(_LARGEST_LUMP, 1 + len(todo) // (workers * _LUMPS_A_WORKER))
        lumps = [todo[at : at + size] for at in range(0, len(todo), size)]
        for found in pool(encoded, lumps):
            yield from found

    return examiner


def _in_processes(processes: int) -> _Pool:
    # It takes long to load, and most questions need no help.
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    def pool(encoded: bytes, lumps: Sequence[Sequence[ExaminationTask]]) -> Iterator[list[Examined]]:
        done = losses = 0
        while done < len(lumps):
            parallel = Parallel(n_jobs=processes, return_as="generator", batch_size=1)
            results = parallel(delayed(examine_lump)(encoded, lump) for lump in lumps[done:])
            try:
                for found in results:
                    yield found
                    done += 1
            except TerminatedWorkerError:
                losses += 1
                if losses > _MOST_LOSSES:
                    raise UserError("processes end by themselves again and again: is memory short?") from None
            finally:
                with warnings.catch_warnings(action="ignore"):  # that the rest is not wanted is no news
                    results.close()

    return pool


def _end_processes() -> None:
    """End those that joblib keeps for the next question, if there are any."""
    loky: Any = sys.modules.get("joblib.externals.loky")
    if loky is not None:
        loky.get_reusable_executor().shutdown(wait=True, kill_workers=True)


def _on_cluster(client: Client) -> _Pool:
    def pool(encoded: bytes, lumps: Sequence[Sequence[ExaminationTask]]) -> Iterator[list[Examined]]:
        # The scheduler keeps what it was sent, so whatever a lost worker had is made again elsewhere.
        reported = client.submit(bytes, encoded, pure=False)
        waiting: deque[Any] = deque()
        try:
            for lump in lumps:
                waiting.append(client.submit(examine_lump, reported, lump, pure=False))
                if len(waiting) > 2 * _LUMPS_A_WORKER * _workers_of(client):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except ModuleNotFoundError as error:
            raise UserError(f"the workers need ovirt-placement, as it is installed here: {error}") from None
        finally:
            client.cancel([reported, *waiting])  # type: ignore[no-untyped-call]

    return pool


def _workers_of(client: Client) -> int:
    return max(1, len(client.scheduler_info(n_workers=-1)["workers"]))


@contextmanager
def _connected(address: str) -> Iterator[Client]:
    try:
        from distributed import Client
        from distributed.utils import LoopRunner
    except ImportError:
        raise UserError("--scheduler needs the extra `distributed`: see docs/ha.md") from None
    runner: Any = LoopRunner()
    runner.start()
    try:
        try:
            client = Client(  # type: ignore[no-untyped-call]
                address, timeout=_CONNECT_SECONDS, set_as_default=False, loop=runner.loop
            )
        except (OSError, ValueError) as error:
            raise UserError(f"no Dask scheduler at {address}: {error}") from None
        with client:
            yield client
    finally:
        runner.stop()
