"""Makes the virtual environment that the RPMs hold, and lists which package holds which of its files.

environment.py WHEELS ROOT LISTS, run by the interpreter that the environment is of. Commands, and what
`setup.cfg` installs next to Python packages, come below ROOT/usr, the environment below ROOT/usr/libexec.
"""

import compileall
import configparser
import os
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

HOME = Path("/usr/libexec/ovirt-placement")

#: What each RPM adds to those before it. Page and simulator both need MarkupSafe, and not each other.
STAGES = {
    "libs": ("ovirt-placement", "markupsafe"),
    "planner": ("ovirt-placement[planner]",),
    "postgresql": ("psycopg[c]",),
    "web": ("ovirt-placement[web]",),
    "simulator": ("ovirt-placement-simulator",),
}

#: Nothing that runs imports them, and they are a third of all files.
TESTS = ("pandas/tests", "numpy/**/tests")

#: For compilers alone.
DEVELOPMENT = {".a", ".c", ".h", ".pc", ".pxd", ".pxi", ".pyx"}

#: As OR-Tools has it in its library of HiGHS; `$ORIGIN` is as long.
EMPTY_RUNPATH = b"\0:::::::\0"

#: No file of the caller, nor of the folder that the caller is in, changes what a command imports. Processes
#: that a command starts load its file as a module.
LAUNCHER = """#!{home}/bin/python3 -sP
import sys

from {module} import {function}

if __name__ == "__main__":
    sys.exit({function}())
"""


def make(wheels: Path, root: Path, lists: Path) -> None:
    home = root / HOME.relative_to("/")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    kept = {home, *home.rglob("*")}
    added: dict[str, set[Path]] = {}
    for package, requirements in STAGES.items():
        _install(wheels, home, requirements)
        _move_out(home, root / "usr")
        _prune(home)
        added[package] = set(home.rglob("*")) - set().union(kept, *added.values())
    added["libs"] |= {file for file in kept if file.exists()}
    packages = _site_packages(home)
    _write_launchers(packages, root / "usr/bin")
    _forget(packages, home)
    _search_no_other_folder(packages)
    _compile(packages, root)
    lists.mkdir()
    for package, files in added.items():
        lines = sorted({*_lines(files, root)})
        (lists / package).write_text("".join(f"{line}\n" for line in lines))


def _install(wheels: Path, home: Path, requirements: tuple[str, ...]) -> None:
    pip = [sys.executable, "-m", "pip", "--isolated", "--quiet", "--disable-pip-version-check"]
    given = ["--no-index", "--find-links", str(wheels), "--no-compile", "--no-warn-script-location"]
    python = str(home / "bin/python3")
    # What pip imports from there itself would else leave bytecode, which then belonged to this stage.
    silent = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([*pip, "--python", python, "install", *given, *requirements], check=True, env=silent)


def _move_out(home: Path, usr: Path) -> None:
    """Move what a wheel installs next to its packages to where it is looked for."""
    for place in ("share", "lib/systemd", "lib/sysusers.d"):
        if (home / place).exists():
            shutil.copytree(home / place, usr / place, dirs_exist_ok=True)
            shutil.rmtree(home / place)


def _prune(home: Path) -> None:
    for script in (home / "bin").iterdir():
        if not script.name.startswith("python"):
            script.unlink()
    shutil.rmtree(home / "include", ignore_errors=True)
    for tests in TESTS:
        for folder in [*_site_packages(home).glob(tests)]:
            shutil.rmtree(folder)
    for file in [*_site_packages(home).rglob("*")]:
        if file.is_file() and file.suffix in DEVELOPMENT:
            file.unlink()


def _write_launchers(packages: Path, commands: Path) -> None:
    commands.mkdir(parents=True, exist_ok=True)
    for points in packages.glob("ovirt_placement*.dist-info/entry_points.txt"):
        read = configparser.ConfigParser(delimiters="=")
        read.read(points)
        for name, target in read["console_scripts"].items():
            module, function = target.split(":")
            (commands / name).write_text(LAUNCHER.format(home=HOME, module=module, function=function))
            (commands / name).chmod(0o755)


def _forget(packages: Path, home: Path) -> None:
    """Remove what names the place of the build, and what would let pip change what RPM installed."""
    for record in packages.glob("*.dist-info/RECORD"):
        record.write_text("")
    for installer in packages.glob("*.dist-info/INSTALLER"):
        installer.write_text("rpm\n")
    settings = home / "pyvenv.cfg"
    lines = settings.read_text().splitlines(keepends=True)
    settings.write_text("".join(line for line in lines if not line.startswith("command")))


def _search_no_other_folder(packages: Path) -> None:
    """Let libraries whose RUNPATH has nothing but empty entries look next to themselves.

    An empty entry is the folder that the caller is in, from which nothing may be loaded.
    """
    for library in packages.rglob("*.so*"):
        content = library.read_bytes()
        if EMPTY_RUNPATH in content:
            library.write_bytes(content.replace(EMPTY_RUNPATH, b"\0$ORIGIN\0"))


def _compile(packages: Path, root: Path) -> None:
    """Compile all, of the time that RPM gives the sources: bytecode of another time does not count."""
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    for file in packages.rglob("*"):
        if file.is_file() and ".so" not in file.suffixes:
            # None is a command, whatever its first line says.
            file.chmod(0o644)
        if file.suffix == ".py":
            os.utime(file, (epoch, epoch))
    # In one process and in order: what marshal writes of a constant depends on who else refers to it.
    compileall.compile_dir(
        packages,
        maxlevels=99,
        quiet=2,
        stripdir=str(root),
        invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP,
    )


def _lines(files: Iterable[Path], root: Path) -> Iterator[str]:
    """Give each file as a specification lists it, folders and bytecode included."""
    for file in files:
        place = f"/{file.relative_to(root)}"
        if file.is_dir() and not file.is_symlink():
            yield f"%dir {place}"
            continue
        yield place
        if file.suffix == ".py":
            yield from _bytecode(file, root)


def _bytecode(source: Path, root: Path) -> Iterator[str]:
    cache = source.parent / "__pycache__"
    compiled = [*cache.glob(f"{source.stem}.cpython-*.pyc")]
    if compiled:
        yield f"%dir /{cache.relative_to(root)}"
    for each in compiled:
        yield f"/{each.relative_to(root)}"


def _site_packages(home: Path) -> Path:
    (packages,) = home.glob("lib/python3*/site-packages")
    return packages


if __name__ == "__main__":
    make(*map(Path, sys.argv[1:4]))
