"""Archives that are the same, bit for bit, whenever and wherever they are made."""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path

_MODE, _EXECUTABLE = 0o644, 0o755


def repack(archive: Path, epoch: int) -> None:
    """Write a .tar.gz again, with the files that it holds and nothing of who made it when."""
    with tarfile.open(archive) as packed:
        held = {one.name: (one, _content(packed, one)) for one in packed.getmembers() if one.isfile()}
    members = ((name, bool(one.mode & 0o100), content) for name, (one, content) in held.items())
    archive.write_bytes(_packed(members, epoch))


def pack(folder: Path, archive: Path, epoch: int) -> None:
    """Write all files of a folder, under its name, into a .tar.gz."""
    files = (file for file in folder.rglob("*") if file.is_file())
    members = ((f"{folder.name}/{file.relative_to(folder)}", False, file.read_bytes()) for file in files)
    archive.write_bytes(_packed(members, epoch))


def checksums(files: Iterable[Path]) -> Iterator[str]:
    """Lines that `sha256sum --check` reads."""
    for file in sorted(files):
        yield f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n"


def _packed(members: Iterable[tuple[str, bool, bytes]], epoch: int) -> bytes:
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, executable, content in sorted(members):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime = len(content), epoch
            entry.mode = _EXECUTABLE if executable else _MODE
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=0)


def _content(packed: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = packed.extractfile(member)
    return file.read() if file is not None else b""
