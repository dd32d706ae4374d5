"""A machine to install packages on: this one's file system under an overlay, in name spaces of its own.

Nothing of what is installed, started or removed there reaches this machine; all ends with the `Machine`.
systemd does not run there: units are enabled, and their commands run by hand.
"""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.paths import CHECKOUT

CONFIGURATION = "/etc/ovirt-placement/ovirt-placement.toml"

#: Arguments: a folder for the layers, the folder with the packages, the checkout, which is hidden there, and
#: folders that any user may walk through.
_MAKE = """
set -e
layers=$1; packages=$2; checkout=$3; shift 3
mount -t tmpfs -o mode=755 layers "$layers"
mkdir "$layers/upper" "$layers/work" "$layers/root"
mount -t overlay machine -o "lowerdir=/,upperdir=$layers/upper,workdir=$layers/work" "$layers/root"
cd "$layers/root"
mount -t proc proc proc
mount --rbind /dev dev
mount -t tmpfs -o mode=755 run run
mkdir -p packages
mount --bind "$packages" packages
mount -t tmpfs -o mode=1777 tmp tmp
mkdir -p ".$checkout"
mount -t tmpfs -o mode=755 hidden ".$checkout"
for folder in "$@"; do chmod o+x ".$folder"; done
ip link set lo up
echo made
exec cat >/dev/null
"""

#: Bytecode counts only if it names the very time and length of its source.
_STALE = """
import pathlib, struct, sys
for source in pathlib.Path(sys.prefix).rglob("*.py"):
    state = source.stat()
    for compiled in (source.parent / "__pycache__").glob(source.stem + ".cpython-*.pyc"):
        flags, time, size = struct.unpack("<4xIII", compiled.read_bytes()[:16])
        if (flags, time, size) != (0, int(state.st_mtime), state.st_size):
            print(source)
"""

_ENVIRONMENT = [
    "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "COLUMNS=200",
]  # fmt: skip

_DNF = [
    "dnf", "-y", "-q", "--disablerepo=*", "--repofrompath=placement,/packages", "--nogpgcheck",
    "--releasever=9", "--setopt=install_weak_deps=False", "--setopt=keepcache=False",
]  # fmt: skip


class Machine:
    """An empty machine, but for what this one has installed itself."""

    def __init__(self, pid: int, root: Path) -> None:
        self._enter = [
            "nsenter", "--target", str(pid), "--mount", "--pid", "--net", "--ipc", "--uts",
            "chroot", str(root),
            *_ENVIRONMENT,
        ]  # fmt: skip

    def command(self, *words: str, user: str = "root") -> list[str]:
        """Give what runs a command there."""
        switched = (
            [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
        )
        return [*self._enter, *switched, *words]

    def tries(self, *words: str, user: str = "root") -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*words, user=user), capture_output=True, text=True, timeout=300)

    def runs(self, *words: str, user: str = "root") -> str:
        done = self.tries(*words, user=user)
        assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def shell(self, script: str) -> str:
        return self.runs("sh", "-euc", script)

    def dnf(self, *words: str) -> str:
        return self.runs(*_DNF, *words)

    def write(self, file: str, text: str) -> None:
        command = self.command("sh", "-euc", 'mkdir -p "$(dirname "$1")" && cat >"$1"', "write", file)
        subprocess.run(command, input=text, text=True, check=True, timeout=60)

    def read(self, file: str) -> str:
        return self.runs("cat", file)

    def shows(self, file: str) -> str:
        """Show mode, owner and group of a file."""
        return self.runs("stat", "--format=%a %U %G", file).strip()

    def stale_bytecode(self) -> str:
        return self.runs("/usr/libexec/ovirt-placement/bin/python3", "-c", _STALE)

    def version(self, package: str) -> str:
        return self.runs("rpm", "-q", "--qf", "%{version}-%{release}", package)


@contextmanager
def machine(place: Path, packages: Path, python: Path) -> Iterator[Machine]:
    """Make a machine whose repository is a folder of packages, and which has an interpreter for them."""
    layers = place / "machine"
    layers.mkdir()
    passed = [str(folder) for folder in python.parents if str(folder) != "/"]
    separate = [
        "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child", "--propagation=private",
    ]  # fmt: skip
    command = ["unshare", *separate, "sh", "-c", _MAKE, "make", layers, packages, CHECKOUT, *passed]
    held = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert held.stdout.readline() == "made\n", "no machine can be made here"
        (pid,) = Path(f"/proc/{held.pid}/task/{held.pid}/children").read_text().split()
        made = Machine(int(pid), layers / "root")
        # Debian's rpm looks elsewhere; and there is no name of any other repository.
        made.write("/etc/rpm/macros", "%_dbpath /var/lib/rpm\n")
        yield made
    finally:
        held.stdin.close()
        held.kill()
        held.wait()
        shutil.rmtree(place, ignore_errors=True)
