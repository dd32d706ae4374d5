"""`make release`: checks the commit, makes and checks all files of a release, and uploads none."""

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime

from release import CHECKOUT, artifacts, checks, rpms, version

_DIST = CHECKOUT / "dist"
_WORK = CHECKOUT / ".work" / "release"


def main() -> int:
    found = [*checks.faults(CHECKOUT, datetime.now(UTC)), *checks.lacking(os.environ)]
    if found:
        print("This commit cannot be released here:", *found, sep="\n- ", file=sys.stderr)
        return 1
    try:
        epoch = checks.epoch(CHECKOUT)
        artifacts.make(_WORK / "made", _DIST, epoch)
        artifacts.inspect(_DIST)
        (wheel,) = _DIST.glob("ovirt_placement-*.whl")
        shutil.rmtree(_WORK / "venv", ignore_errors=True)
        bill = _DIST / f"ovirt-placement-{version()}.cdx.json"
        artifacts.bill_of_materials(wheel, _WORK / "venv", bill)
        for_tests = _rpms(epoch)
    except subprocess.CalledProcessError as error:
        print(f"failed: {' '.join(map(str, error.cmd))}", file=sys.stderr)
        return 1
    files = sorted(_DIST.iterdir())
    (_DIST / "SHA256SUMS").write_text("".join(artifacts.checksums(files)))
    print(*(file.name for file in files), "SHA256SUMS", sep="\n")
    if for_tests:
        print(f"RPMs that were linked here are for tests, and stay in {_WORK / 'rpms'}.")
    print(
        f"Version {version()} is in {_DIST}; nothing was uploaded. Go on as docs/developers/release.md says."
    )
    return 0


def _rpms(epoch: int) -> list[rpms.Rpm]:
    for folder in ("rpms", "rpm-tree"):
        shutil.rmtree(_WORK / folder, ignore_errors=True)
    tree = artifacts.export(CHECKOUT, _WORK / "rpm-tree")
    rpms.build(tree, CHECKOUT / ".work/rpm/wheels", _WORK / "rpms", epoch)
    return rpms.gather(_WORK / "rpms", _DIST, epoch)


if __name__ == "__main__":
    sys.exit(main())
