"""Builds the RPMs for the tests, twice, other releases of the same files, and packages of what EL has."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.packages.rpm.machine import CONFIGURATION
from tests.paths import CHECKOUT
from tests.test_packaging import IGNORED

WHEELS = CHECKOUT / ".work" / "rpm" / "wheels"
EPOCH = "1790000000"


def _defined(**macros: object) -> list[str]:
    return [word for name, value in macros.items() for word in ("--define", f"{name} {value}")]


#: Packed and compiled fast: neither changes what is tested.
_FAST = _defined(_binary_payload="w1.gzdio", _source_payload="w0.gzdio", optflags="-O0")


def interpreter() -> Path:
    """Find a Python 3.12 of this machine."""
    named = os.environ.get("RPM_PYTHON", "/usr/bin/python3.12")
    found = [Path(named), *sorted(Path.home().glob(".pyenv/versions/3.12.*/bin/python3.12"))]
    return next(python for python in found if python.exists())


def build_twice(place: Path) -> tuple[Path, Path]:
    """Give the folders of two builds, each with its packages in `rpms`."""
    subprocess.run(
        ["make", "--silent", str(WHEELS.relative_to(CHECKOUT) / ".fetched")], cwd=CHECKOUT, check=True
    )
    builds = (place / "once", place / "and-again")
    begun = [_begin(top) for top in builds]
    for top, process in zip(builds, begun, strict=True):
        output = process.communicate(timeout=1200)[0]
        assert process.returncode == 0, f"{top}: {output}"
    return builds


def _begin(top: Path) -> subprocess.Popen[str]:
    source = shutil.copytree(CHECKOUT, top / "source", ignore=IGNORED)
    command = [source / "packaging/rpm/build.sh", sys.executable, WHEELS, top, *_FAST]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "RPM_PYTHON": str(interpreter())}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def packages(top: Path) -> dict[str, Path]:
    """Give a build's packages by their names."""
    return {file.name.rsplit("-", 2)[0]: file for file in (top / "rpms").rglob("*.rpm")}


def ask(query: str, *files: Path) -> list[str]:
    """Ask rpm for something of package files, such as `--requires`."""
    done = subprocess.run(["rpm", "-qp", query, *files], capture_output=True, text=True, check=True)
    return sorted({line.strip() for line in done.stdout.splitlines()})


def repository(place: Path, *files: Path) -> Path:
    """Make a folder from which dnf installs these packages, and what they need of a distribution."""
    place.mkdir(parents=True)
    for file in files:
        os.link(file, place / file.name)
    own = {line.split()[0] for line in ask("--provides", *files)}
    # It has no fapolicyd, so that nothing asks for the rule for it.
    needed = [line for line in ask("--requires", *files) if not re.match(r"rpmlib|fapolicyd|\(", line)]
    missing = sorted({line for line in needed if line.split()[0] not in own})
    shutil.copy(distribution(place.parent, [*missing, "/bin/sh", "systemd"]), place)
    subprocess.run(["createrepo_c", "--quiet", str(place)], check=True)
    return place


def packed_as_earlier(top: Path, place: Path) -> list[Path]:
    """Pack the files of a build again, as release 0.9.9 with another default configuration: that is quick.

    Of planner, page and simulator only what stands outside of the environment.
    """
    unpacked = place / "unpacked"
    unpacked.mkdir(parents=True)
    for name, file in packages(top).items():
        if name != "ovirt-placement-planner":
            _unpack(file, unpacked)
    configuration = unpacked / CONFIGURATION[1:]
    configuration.write_text(f"{configuration.read_text()}# of the release before\n")
    lists = place / "BUILD" / "lists"
    lists.mkdir(parents=True)
    for name in ("planner", "postgresql", "web", "simulator"):
        (lists / name).write_text("")
    modes = ask("--queryformat=[%{FILEMODES:perms} %{FILENAMES}\\n]", packages(top)["ovirt-placement-libs"])
    files = (line.split() for line in modes if "/usr/share/" not in line)
    listed = (f"%dir {file}" if mode.startswith("d") else file for mode, file in files)
    (lists / "libs").write_text("".join(f"{line}\n" for line in listed))
    head, _, rest = (top / "ovirt-placement.spec").read_text().partition("\n%prep\n")
    _, _, scriptlets = rest.partition("\n%pre\n")
    body = f"%install\ncp -a {unpacked}/. %{{buildroot}}\n\n%pre\n{scriptlets}"
    text = f"{head}\n{body}".replace("\nVersion: 1.0.0\n", "\nVersion: 0.9.9\n")
    # The licence stands in the sources, which are not unpacked.
    text = text.replace(" - 1.0.0-1", " - 0.9.9-1").replace("%license LICENSE\n", "")
    (place / "again.spec").write_text(text)
    options = _defined(_topdir=place, _rpmdir=place / "rpms", python=interpreter())
    options += _defined(_empty_manifest_terminate_build=0, _unpackaged_files_terminate_build=0)
    command = ["rpmbuild", "--quiet", "-bb", *options, *_FAST, place / "again.spec"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [*packages(place).values()]


def _unpack(package: Path, place: Path) -> None:
    archive = subprocess.run(["rpm2cpio", package], capture_output=True, check=True).stdout
    subprocess.run(["cpio", "-idmu", "--quiet"], input=archive, cwd=place, check=True)


# -- Small packages for what is not to be had here: EL's own ones, and the former ovirt-scheduler-proxy.
#: What EL has: libraries, systemd, an interpreter; and that nothing is enabled by itself.
_DISTRIBUTION = """
Name: distribution
Version: 9
Release: 1
Summary: What the distribution has
License: none
BuildArch: noarch
AutoReqProv: no
{provides}
%description
It stands for the distribution's packages.
%install
install -d %{{buildroot}}/usr/lib/systemd/system-preset
echo 'disable *' > %{{buildroot}}/usr/lib/systemd/system-preset/99-default-disable.preset
%files
/usr/lib/systemd/system-preset/99-default-disable.preset
"""

#: As ovirt-scheduler-proxy.spec.in of oVirt has it, of its last release: files, users, and scriptlets.
_FORMER = """
Name: ovirt-scheduler-proxy
Version: 0.1.9
Release: 1
Summary: Scheduling Proxy for Open Virtualization
License: ASL 2.0
BuildArch: noarch
%description
The former proxy, without its code.
%install
install -d %{buildroot}/usr/share/ovirt-scheduler-proxy/plugins %{buildroot}/var/log/ovirt-scheduler-proxy
install -d %{buildroot}/usr/lib/systemd/system
cat > %{buildroot}/usr/lib/systemd/system/ovirt-scheduler-proxy.service <<EOF
[Service]
User=ovirt
WorkingDirectory=/usr/share/ovirt-scheduler-proxy
EnvironmentFile=-/etc/sysconfig/ovirt-scheduler-proxy
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
EOF
%pre
getent group ovirt >/dev/null || groupadd ovirt
getent passwd ovirt >/dev/null || useradd -g ovirt -s /sbin/nologin -d /usr/share/ovirt-scheduler-proxy ovirt
%post
if [ $1 -eq 1 ]; then systemctl --no-reload preset ovirt-scheduler-proxy.service || :; fi
%preun
if [ $1 -eq 0 ]; then systemctl --no-reload disable --now ovirt-scheduler-proxy.service || :; fi
%files
/usr/lib/systemd/system/ovirt-scheduler-proxy.service
/usr/share/ovirt-scheduler-proxy
%attr(-, ovirt, ovirt) /var/log/ovirt-scheduler-proxy
"""


def distribution(place: Path, provides: list[str]) -> Path:
    lines = "\n".join(f"Provides: {each}" for each in provides)
    return _built(place, "distribution", _DISTRIBUTION.format(provides=lines))


def former_proxy(place: Path) -> Path:
    return _built(place, "former", _FORMER)


def _built(place: Path, name: str, text: str) -> Path:
    top = place / name
    top.mkdir()
    (top / "stub.spec").write_text(text)
    options = _defined(_build_id_links="none", debug_package="%{nil}", _topdir=top)
    command = ["rpmbuild", "--quiet", "-bb", *options, top / "stub.spec"]
    subprocess.run(command, check=True, capture_output=True)
    (package,) = top.rglob("*.rpm")
    return package
