"""Puts together what is known of the engine and of the placement keys, and publishes it."""

from __future__ import annotations

import asyncio
import errno
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from ovirt_placement.inventory.client.keys import as_recorded, levels, names_host_tags, searches
from ovirt_placement.inventory.on_demand.details import referred
from ovirt_placement.inventory.on_demand.needs import Needs
from ovirt_placement.inventory.published.publication import Moments, now
from ovirt_placement.inventory.published.writer import Writer
from ovirt_placement.inventory.service.attempts import in_thread
from ovirt_placement.inventory.service.key_watch import WatchedKeys
from ovirt_placement.inventory.service.metrics import InventoryMetrics
from ovirt_placement.model import Snapshot
from ovirt_placement.model.snapshot import HOST_TAGS, STORED, VM_DETAILS, Part
from ovirt_service.errors import UserError
from ovirt_service.saying import Complaint

#: So long the first publication waits for the details that keys refer to, and for who searches find: a
#: decision without them may put a VM where it must not be, but without a publication there is none.
_FIRST_DETAILS_SECONDS = 10.0
_NEVER = float("-inf")
#: How often the file is compared with what was written: nobody decides without it for longer.
_COMPARE_SECONDS = 0.25
#: What may be over soon, and is no mistake of who set the service up.
_PASSING = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.EIO, errno.ENOMEM}

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PublicationState:
    """What one turn found; without a snapshot there is nothing yet that may be believed."""

    snapshot: Snapshot | None
    moments: Moments
    needs: Needs
    #: What is needed and was not read yet.
    unread: tuple[Part, ...] = ()


class Publisher:
    """One publication after the other; made within the loop of asyncio that it is for."""

    def __init__(
        self,
        directory: Path,
        writer: Writer,
        ready: Callable[[], None],
        replaced: Callable[[Snapshot, float], object],
        metrics: InventoryMetrics,
    ) -> None:
        """`ready` is called once the first snapshot is there, and `replaced` with what is to be no more.

        It gets the snapshot and the moment at which that was true.
        """
        self._directory = directory
        self._writer = writer
        self._ready = ready
        self._replaced = replaced
        self._published: Snapshot | None = None
        self._metrics = metrics
        self._publishing = asyncio.Lock()
        self._complaint = Complaint(_log, "cannot publish", "publishes again")
        #: Why nothing can be written now; empty if it can.
        self.unwritable = ""
        #: What was reported last of the two.
        self.state: PublicationState | None = None
        self.keys = WatchedKeys()
        #: What is published; 0 is nothing yet.
        self.version = 0
        self.moments = Moments(_NEVER)
        metrics.age.set_function(lambda: now() - self.moments.as_of)
        metrics.as_of.set_function(lambda: max(0.0, time.time() - (now() - self.moments.as_of)))

    async def publish(self, *, wait_for_details: bool) -> None:
        """Publish what is known by now, if it may be believed.

        The first may have to wait for details of VMs. Raises `UserError` if nothing can be written.
        """
        async with self._publishing:
            state, keys = self.state, self.keys
            if state is None or state.snapshot is None or keys.asked_at == _NEVER:
                return
            if not self.version and wait_for_details and _lacks_details(state, keys):
                return
            moments = state.moments._replace(store_asked_at=keys.asked_at, keys_at=keys.read_at)
            if self._published is not None:
                self._replaced(self._published, self.moments.as_of)
            self._published = replace(as_recorded(state.snapshot, keys.records), unread=_unread(state, keys))
            await self._write(self._published, moments)

    async def keep_whole(self) -> None:
        """Compare the file with what was written again and again, and publish it again where it differs."""
        while True:
            await self.repair()
            await asyncio.sleep(_COMPARE_SECONDS)

    async def repair(self, *, reported: bool = False) -> None:
        """Publish again what is damaged, if it is; `reported` if a reader has found that."""
        async with self._publishing:
            if self.unwritable:
                return  # what is published next is written whole
            repaired = partial(self._writer.repair, self.moments, reported=reported)
            with self._writing():
                if (version := await in_thread(repaired)) is not None:
                    self.version = version
                    self._metrics.versions.inc()

    async def _write(self, snapshot: Snapshot, moments: Moments) -> None:
        before = self.version
        with self._writing():
            self.version = await in_thread(partial(self._writer.publish, snapshot, moments))
        if self.unwritable:
            return
        self.moments = moments
        if self.version != before:
            self._metrics.versions.inc()
            self._metrics.count_disabled(snapshot)
        if not before:
            self._ready()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Take a full disk and the like for what passes; readers read the engine themselves meanwhile."""
        self.unwritable = ""
        try:
            yield
        except OSError as error:
            self.unwritable = f"{self._directory}: {error.strerror}"
            if not self.version and error.errno not in _PASSING:
                raise UserError(
                    f"[inventory] directory: {self._directory}: cannot publish there: {error.strerror}"
                ) from None
        self._complaint.say(self.unwritable)


def _unread(state: PublicationState, keys: WatchedKeys) -> tuple[Part, ...]:
    """What is needed and was not read: also by keys and rules of which the last turn knew nothing."""
    details = bool(referred(levels(keys.records))) and state.moments.details_at == _NEVER
    tags = names_host_tags(keys.records) and not state.needs.statistics.tags
    parts: dict[Part, bool] = {HOST_TAGS: tags, VM_DETAILS: details, STORED: keys.read_at == _NEVER}
    return tuple(dict.fromkeys((*state.unread, *(part for part, lacks in parts.items() if lacks))))


def _lacks_details(state: PublicationState, keys: WatchedKeys) -> bool:
    """Whether what keys and rules refer to is still to be read, and worth waiting for."""
    late = now() > state.moments.whole_at + _FIRST_DETAILS_SECONDS
    unread = not {HOST_TAGS, VM_DETAILS}.isdisjoint(_unread(state, keys))
    unanswered = bool(searches(keys.records)) and state.moments.searches_at == _NEVER
    return (unread or unanswered) and not late
