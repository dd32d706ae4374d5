"""What is built: the same each time, and of what EL has alone."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.packages.rpm.building import ask, interpreter, packages
from tests.paths import CHECKOUT

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("rpm")]

RPMS = {
    "ovirt-placement", "ovirt-placement-libs", "ovirt-scheduler-proxy", "ovirt-placement-enforcer",
    "ovirt-placement-planner", "ovirt-placement-postgresql", "ovirt-placement-web",
    "ovirt-placement-simulator",
    "ovirt-placement-fapolicyd", "ovirt-placement-monitoring",
}  # fmt: skip


def test_two_builds_are_the_same_bit_by_bit(builds: tuple[Path, Path]) -> None:
    once, again = (packages(top) for top in builds)
    assert once.keys() == again.keys() == RPMS
    assert [name for name in once if once[name].read_bytes() != again[name].read_bytes()] == []


def test_the_version_is_one_everywhere(build: Path) -> None:
    read = configparser.ConfigParser()
    read.read(CHECKOUT / "setup.cfg")
    version = read["metadata"]["version"]
    collection = yaml.safe_load((CHECKOUT / "packaging/ansible/galaxy.yml").read_text())
    assert collection["version"] == version
    found = ask("--queryformat=%{version} %{release}\n", *packages(build).values())
    # Linked on Debian, it is for tests.
    assert found == [f"{version} 1.test"]


def test_rpmlint_finds_nothing_but_what_is_meant(build: Path, tmp_path: Path) -> None:
    shutil.copy(CHECKOUT / "packaging/rpm/rpmlint.toml", tmp_path)
    # The interpreter of this machine lets what is linked look for its library; that of EL does not.
    ours = re.escape(str(interpreter().resolve().parents[1] / "lib"))
    (tmp_path / "here.toml").write_text(f"Filters = ['E: binary-or-shlib-defines-rpath .*RUNPATH: {ours}']\n")
    files = [*packages(build).values(), *build.glob("*.src.rpm")]
    assert len(files) == len(RPMS) + 1
    linted = subprocess.run(["rpmlint", "-c", tmp_path, *files], capture_output=True, text=True, timeout=600)
    assert re.findall(r" [EW]: .*", linted.stdout) == []
    assert f"{len(files)} packages and 0 specfiles checked; 0 errors, 0 warnings" in linted.stdout


def test_only_what_el_has_is_asked_of_the_system(build: Path) -> None:
    files = packages(build).values()
    own = {line.split()[0] for line in ask("--provides", *files)}
    needed = {line.split()[0] for line in ask("--requires", *files)} - own
    libraries = {re.split(r"[.(]so|\.so", name)[0] for name in needed if ".so." in name}
    assert libraries >= {"libcurl", "libpq", "libxml2"}
    assert libraries - {"libcurl", "libpq", "libxml2"} <= {
        "ld-linux-x86-64", "libc", "libcrypto", "libdl", "libgcc_s", "libm", "libpthread", "librt", "libssl",
        "libstdc++", "libutil",
    }  # fmt: skip
    others = {name for name in needed if ".so." not in name and not name.startswith("rpmlib(")}
    assert others == {
        "/bin/sh",
        "systemd",
        "fapolicyd",
        "rtld(GNU_HASH)",
        str(interpreter()),
        "(ovirt-placement-fapolicyd",
    }


def test_what_is_bundled_is_declared(build: Path) -> None:
    files = packages(build)
    for name in RPMS:
        declared = {
            match[1]
            for line in ask("--provides", files[name])
            if (match := re.match(r"bundled\(python3dist\((.*)\)\) = ", line))
        }
        held = {
            match[1].lower().replace("_", "-").replace(".", "-")
            for line in ask("--list", files[name])
            if (match := re.search(r"/site-packages/([\w.]+)-[^/]*\.dist-info$", line))
        }
        assert declared == {each for each in held if not each.startswith("ovirt-placement")}, name
