"""Whether highly available VMs would be started again if hosts failed, by one process or by many."""

from __future__ import annotations

import sys
import warnings
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec.structs import replace

from ovirt_placement.answers.document import Document
from ovirt_placement.answers.placement import NotWaiting, PriorityClass, not_waited, priority_classes
from ovirt_placement.answers.status.clusters import LostVm
from ovirt_placement.model import Snapshot
from ovirt_placement.model.names import Named, NamedCluster, NamedHost, NamedVm, vm_name
from ovirt_placement.model.record import From, Record, with_names
from ovirt_placement.planning.outages import why_unplaced
from ovirt_placement.rules.elements.verdict import Reason, sentence
from ovirt_placement.rules.failover.check import DEFAULT_BUDGET, CheckQuestion, HaCheck, Spread
from ovirt_placement.rules.failover.measures import Examined, Examiner, Measure, examine
from ovirt_placement.rules.failover.outcomes import Loss, Proven, Size, may_fail, protected
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from distributed import Client

# -- Spreads the work of a check over processes of this machine, or over the workers of a Dask cluster.
#: Each worker has about this many lumps to do: the last ones leave few idle for long.
_LUMPS_A_WORKER = 8
_LARGEST_LUMP = 500
#: So often the pool of processes is made again after one of them was lost.
_MOST_LOSSES = 3
#: How long a scheduler may take to answer.
_CONNECT_SECONDS = 10

#: Does the lumps somewhere, and gives what came of them in order.
_Lumps = Sequence[Sequence[tuple[str, ...]]]
_Pool = Callable[[bytes, _Lumps], Iterator[list[Examined]]]


@contextmanager
def spreading(processes: int | None, scheduler: str | None) -> Iterator[Spread | None]:
    """Who does the work; None: the process itself. Raises `UserError` if others are not there, or lost."""
    if scheduler is not None:
        with _connected(scheduler) as client:
            on_cluster = partial(_on_cluster, client)
            yield lambda question: _lump_wise(question, _workers_of(client), on_cluster)
    elif processes is not None and processes > 1:
        try:
            in_processes = partial(_in_processes, processes)
            yield lambda question: _lump_wise(question, processes, in_processes)
        finally:
            # Those that joblib keeps for the next question, if there are any.
            loky: Any = sys.modules.get("joblib.externals.loky")
            if loky is not None:
                loky.get_reusable_executor().shutdown(wait=True, kill_workers=True)
    else:
        yield None


def examine_lump(encoded: bytes, tasks: Sequence[tuple[str, ...]]) -> list[Examined]:
    """What a worker does, until the steps of the whole question are taken."""
    question, measure = _understood(encoded)
    found: list[Examined] = []
    left = question.steps
    for failed in tasks:
        if left < 0:
            break
        found.append(examine(measure, failed, question.steps))
        left -= found[-1].steps
    return found


@lru_cache(maxsize=2)  # by starts, and by the engine's own check
def _understood(encoded: bytes) -> tuple[CheckQuestion, Measure]:
    question = msgspec.msgpack.decode(zlib.decompress(encoded), type=CheckQuestion)
    return question, question.measure()


def _lump_wise(question: CheckQuestion, workers: int, pool: _Pool) -> Examiner:
    encoded = zlib.compress(msgspec.msgpack.encode(question), 1)

    def examiner(tasks: Iterable[tuple[str, ...]]) -> Iterator[Examined]:
        todo = list(tasks)
        size = min(_LARGEST_LUMP, 1 + len(todo) // (workers * _LUMPS_A_WORKER))
        lumps = [todo[at : at + size] for at in range(0, len(todo), size)]
        for found in pool(encoded, lumps):
            yield from found

    return examiner


def _in_processes(processes: int, encoded: bytes, lumps: _Lumps) -> Iterator[list[Examined]]:
    # It takes long to load, and most questions need no help.
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

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


def _on_cluster(client: Client, encoded: bytes, lumps: _Lumps) -> Iterator[list[Examined]]:
    # The scheduler keeps what it was sent, so what a lost worker had is made again elsewhere.
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


# -- Whether highly available VMs would be started again if hosts failed.
#: How much work a check does by each measure, by default.
DEFAULT_STEPS = DEFAULT_BUDGET

#: Of this many failures of a cluster it is reported why VMs cannot restart,
_MOST_EXPLAINED = 10
#: and of this many VMs of each.
_MOST_VMS = 5
_NOT_FOR_ALL = "takes it alone, but not with all that must restart"


class Failing(Record, frozen=True, omit_defaults=False):
    """Hosts that fail together, and the failure domains, where whole ones do."""

    hosts: tuple[NamedHost, ...]
    domains: tuple[str, ...]


class HostRefusal(Record, frozen=True, omit_defaults=False):
    """A host that is left, and why it refuses a VM, as sentences."""

    host: NamedHost
    because: Annotated[tuple[str, ...], refusal_text]


class UnplacedRecord(Record, frozen=True, omit_defaults=False):
    """A VM that cannot restart once all others have."""

    vm: NamedVm
    refused: tuple[HostRefusal, ...]


class Home(Record, frozen=True, omit_defaults=False):
    vm: NamedVm
    host: NamedHost


class LostSet(Failing, frozen=True, omit_defaults=False):
    """Hosts that must not fail together, and VMs that would have no home then."""

    unplaced: tuple[NamedVm, ...]
    #: Why; only of the first failures of a cluster.
    because: tuple[UnplacedRecord, ...] = ()
    #: Where the order of the restarts alone is to blame: another order, in which every VM has a home.
    in_another_order: Annotated[tuple[Home, ...], From("otherwise")] = ()


class Survived(Failing, frozen=True, omit_defaults=False):
    """Hosts whose failure is survived, and where each VM would start, in the order of the starts."""

    homes: tuple[Home, ...]


class Tightest(Failing, frozen=True, omit_defaults=False):
    """Hosts whose failure leaves little room."""

    #: For how many more VMs of this size there is room then at most; below 0 there is too little.
    room_for: int
    memory_mb: int
    #: Null where the work budget ended before an answer.
    survived: bool | None


class RestingVm(Record, frozen=True, omit_defaults=False):
    """A highly available VM that is down by intent: the check is not about it."""

    vm: NamedVm
    status: str
    sentence: Annotated[str, From(lambda one, snapshot: f"{vm_name(one.vm, snapshot)} is {one.status}")]


class FailingUnit(Record, frozen=True, omit_defaults=False):
    """Hosts that fail whole, and the name of their failure domain; null for hosts that were named."""

    hosts: tuple[NamedHost, ...]
    domain: str | None


class CheckVerdict(Record, frozen=True, omit_defaults=False):
    """What is proven by one measure."""

    #: Whether every such failure is survived; null if that is not known.
    safe: bool | None
    #: The smallest sets of hosts whose failure is not survived.
    losses: tuple[LostSet, ...]
    #: Sets that were too hard.
    unknown: tuple[Failing, ...]
    #: How many sets are proven to be survived.
    survived: int
    #: How many sets the work budget left unjudged.
    unjudged: int
    #: The same counts by the size of the sets.
    sizes: tuple[Size, ...]
    #: Of each single failure that is survived, where everything goes.
    survivals: tuple[Survived, ...]
    #: The worst sets that were looked for where not all could be judged.
    tightest: tuple[Tightest, ...]


class CheckedCluster(CheckVerdict, frozen=True, omit_defaults=False):
    """What is proven about one cluster: that all starts pass every filter."""

    cluster: NamedCluster
    #: How many hosts, or domains, fail together.
    failures: int
    #: Why nothing is known now, whatever the numbers say; empty as a rule.
    doubt: str
    #: What fails whole; nothing where every host fails by itself.
    units: tuple[FailingUnit, ...]
    #: By the engine's own, softer check.
    by_engine: CheckVerdict
    #: While any is lost, the cluster is not safe.
    lost: tuple[LostVm, ...]
    outside: tuple[RestingVm, ...]
    #: The order of the restarts, if all hosts failed, by which failures were judged: the highest priority
    #: first.
    restart_order: tuple[PriorityClass, ...]
    #: Rules of the restart order that the engine's priorities do not bring about.
    not_waiting: tuple[NotWaiting, ...]


class HaCheckDocument(Document, frozen=True, kw_only=True, tag="ha_check"):
    """Whether highly available VMs would be started again if hosts failed."""

    clusters: tuple[CheckedCluster, ...]
    #: Clusters that were not judged, since they reserve nothing and were not named.
    not_checked: tuple[Named, ...]

    @property
    def safe(self) -> bool:
        return all(one.safe is True for one in self.clusters)


def checked_cluster(found: HaCheck, softer: Proven, snapshot: Snapshot) -> CheckedCluster:
    # All VMs that restart after the failure of some host.
    failing = may_fail(snapshot, found.cluster)
    restarting = [vm for vms in protected(snapshot, failing).values() for vm in vms]
    return with_names(
        CheckedCluster,
        found,
        snapshot,
        losses=tuple(
            _lost(one, snapshot, explained=number < _MOST_EXPLAINED)
            for number, one in enumerate(found.losses)
        ),
        by_engine=with_names(
            CheckVerdict,
            softer,
            snapshot,
            losses=tuple(_lost(one, snapshot, explained=False) for one in softer.losses),
        ),
        restart_order=priority_classes(snapshot, restarting),
        not_waiting=tuple(not_waited(snapshot, found.cluster)),
    )


def _lost(loss: Loss, snapshot: Snapshot, *, explained: bool) -> LostSet:
    some = replace(loss, unplaced=loss.unplaced[:_MOST_VMS])
    because = tuple(why_unplaced(snapshot, some)) if explained else ()
    return with_names(LostSet, loss, snapshot, because=because)


def refusal_text(reasons: Iterable[Reason], snapshot: Snapshot) -> tuple[str, ...]:
    """Why a host refuses a VM, each reason once."""
    return tuple(dict.fromkeys(sentence(reason, snapshot) for reason in reasons)) or (_NOT_FOR_ALL,)
