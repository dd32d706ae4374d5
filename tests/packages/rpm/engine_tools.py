"""What engine-backup and sos do with the files that packages add to them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.packages.rpm.machine import Machine

#: Where a backup lies, as engine-backup unpacks it.
BACKUP = "/root/backup"

#: As engine-backup sources what packages add: within a function whose variables they see, in this order.
_ENGINE_BACKUP = """
output() { printf '%%s\\n' "$1"; }
source_d() {
    local file
    for file in $(find "/etc/ovirt-engine-backup/engine-backup-$1.d" -name '*.sh' | sort); do . "$file"; done
}
dobackup() {
    local tardir="$TEMP_FOLDER"
    mkdir -p "$tardir"
    echo "$BACKUP_PATHS" | while read -r path; do [ -e "$path" ] && echo "$path"; done \
        | tar -C / --files-from - -cPf "$tardir/files"
    source_d dobackup
}
SCOPE_FILES=%(files)s
TEMP_FOLDER=%(folder)s
BACKUP_PATHS=/etc/hostname
source_d defaults
"""


def backup(machine: Machine, *, files: bool = True) -> str:
    """Save what engine-backup saves, of files or only of databases; return what it says."""
    return _run(machine, files, "dobackup")


def restore(machine: Machine) -> str:
    """Restore it; return what engine-backup says."""
    return _run(machine, True, "source_d dorestore")


def collected_by_sos(machine: Machine) -> Sequence[str]:
    """The commands that a report runs."""
    lines = machine.read("/etc/sos/extras.d/ovirt-placement").splitlines()
    return [line for line in lines if line.strip() and not line.startswith(("#", ":"))]


def _run(machine: Machine, files: bool, stage: str) -> str:
    values = {"files": "1" if files else "", "folder": BACKUP}
    return machine.runs("bash", "-c", _ENGINE_BACKUP % values + stage)
