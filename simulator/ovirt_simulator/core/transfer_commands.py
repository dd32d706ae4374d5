"""Uploads to disks: begun, finished, called off. What is sent goes nowhere, for disks here have no content.

Source: the engine's TransferDiskImageCommand, TransferImageStatusCommand and ImageTransferPhase.
"""

from __future__ import annotations

from msgspec.structs import replace

from .backend import Backend
from .entities import ADMIN, Caller, Record
from .rejections import NotFound


class ImageTransfer(Record, frozen=True):
    id: str
    #: The id of the disk.
    disk: str
    #: The REST API's ImageTransferPhase: transferring, finished_success or finished_failure.
    phase: str = "transferring"


class TransferCommands:
    """Commands on uploads; all raise `NotFound`."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._transfers: dict[str, ImageTransfer] = {}

    def begin(self, disk_id: str, *, caller: Caller = ADMIN) -> ImageTransfer:
        """Begin an upload to a disk, which takes data at once."""
        with self._backend.lock:
            if self._backend.state.image(disk_id) is None:
                raise NotFound(disk_id)
            transfer = ImageTransfer(id=self._backend.new_id(), disk=disk_id)
            self._transfers[transfer.id] = transfer
            job = self._backend.jobs.start(f"Transferring image for disk {disk_id}", caller)
            self._backend.jobs.end(job, "finished")
            return transfer

    def get(self, transfer_id: str) -> ImageTransfer:
        with self._backend.lock:
            if transfer_id not in self._transfers:
                raise NotFound(transfer_id)
            return self._transfers[transfer_id]

    def end(self, transfer_id: str, *, success: bool) -> None:
        """Finish an upload, or call it off."""
        with self._backend.lock:
            phase = "finished_success" if success else "finished_failure"
            self._transfers[transfer_id] = replace(self.get(transfer_id), phase=phase)
