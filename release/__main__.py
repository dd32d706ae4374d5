"""`make release`: checks the commit, makes and checks all files of a release, and uploads none."""

from __future__ import annotations

import shutil
import subprocess
import sys
from datetime import UTC, datetime

from release import archives, artifacts, checks, inspection
from release.tree import CHECKOUT, version

_DIST = CHECKOUT / "dist"
_WORK = CHECKOUT / ".work" / "release"


def main() -> int:
    found = list(checks.faults(CHECKOUT, datetime.now(UTC)))
    if found:
        print("This commit cannot be released:", *found, sep="\n- ", file=sys.stderr)
        return 1
    try:
        artifacts.make(_WORK / "made", _DIST, checks.epoch(CHECKOUT))
        inspection.inspect(_DIST)
        (wheel,) = _DIST.glob("ovirt_placement-*.whl")
        shutil.rmtree(_WORK / "venv", ignore_errors=True)
        bill = _DIST / f"ovirt-placement-{version()}.cdx.json"
        inspection.bill_of_materials(wheel, _WORK / "venv", bill)
    except subprocess.CalledProcessError as error:
        print(f"failed: {' '.join(map(str, error.cmd))}", file=sys.stderr)
        return 1
    files = sorted(_DIST.iterdir())
    (_DIST / "SHA256SUMS").write_text("".join(archives.checksums(files)))
    print(*(file.name for file in files), "SHA256SUMS", sep="\n")
    print(
        f"Version {version()} is in {_DIST}; nothing was uploaded. Go on as docs/developers/release.md says."
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
