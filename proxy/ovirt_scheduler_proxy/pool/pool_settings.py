"""What a pool must know to run the workers of one plugin folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class PoolSettings:
    """How the workers of one folder are run."""

    folder: Path
    python: str
    #: Workers kept ready.
    warm: int
    #: Never more workers than this.
    most: int
    #: Bytes that a worker may take beyond what it has after loading.
    memory_limit: int
    #: A worker is replaced after this many calls; 0 means never.
    calls_per_worker: int
    #: Seconds that the import of one module may take.
    load_timeout: float
    log_level: int
