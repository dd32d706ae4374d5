"""What a hardened host refuses, or does not reach: plugins under fapolicyd, wheels in FIPS mode."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ovirt_placement.answers.doctor.finding import Finding
from ovirt_placement.answers.status import proxy
from ovirt_placement.config import Config
from ovirt_service.errors import UserError

_DAEMON = "fapolicyd"
#: What is in force: all that stands in rules.d, once it is loaded.
_RULES = Path("etc/fapolicyd/compiled.rules")
_ALLOWED = re.compile(r"^allow\S* .*:.*\bdir=(/\S*)", re.MULTILINE)
#: Wheels that bring an OpenSSL, by the folder of their libraries.
_PYCURL, _PSYCOPG = "pycurl.libs", "psycopg_binary.libs"


def examine_hardening(config: Config, root: Path) -> Iterator[Finding]:
    """Look at the system whose files are below `root`. Raises `UserError` if we may not look at a file."""
    yield from examine_fips(config, root, map(Path, sys.path))
    yield from examine_fapolicyd(config.engine.name, root)


def examine_fips(config: Config, root: Path, packages: Iterable[Path]) -> Iterator[Finding]:
    """Look whether what speaks TLS does it by the system's OpenSSL, which alone knows of FIPS mode."""
    if _read(root / "proc/sys/crypto/fips_enabled").strip() != "1":
        return
    used = (_PYCURL, _PSYCOPG) if config.store.url.startswith("postgresql") else (_PYCURL,)
    folders = tuple(packages)
    wheels = [wheel for wheel in used if any(any((each / wheel).glob("libcrypto*")) for each in folders)]
    if wheels:
        names = " and ".join(wheel.removesuffix(".libs").replace("_", "-") for wheel in wheels)
        yield Finding(
            kind="fips_not_reached",
            what=f"the system is in FIPS mode, and {names} has an OpenSSL of its own, which is not",
            remedy="build it against the system's libraries: docs/hardened-hosts.md shows how",
        )


def examine_fapolicyd(engine: str, root: Path) -> Iterator[Finding]:
    """Look whether the proxy's workers may read plugins that no package has installed."""
    if not _runs(root):
        return
    allowed = [Path(found) for found in _ALLOWED.findall(_read(root / _RULES))]
    for folder in proxy.others_plugins(engine):
        plugins = any((root / folder.relative_to("/")).glob("*.py"))
        if plugins and not any(folder.is_relative_to(each) for each in allowed):
            yield Finding(
                kind="fapolicyd_refuses",
                what=f"fapolicyd is in force, and no rule of it lets the proxy read {folder}: plugins there"
                " that no package has installed do not load",
                remedy="add the rule that docs/hardened-hosts.md shows to /etc/fapolicyd/rules.d, then"
                " fagenrules --load && systemctl restart fapolicyd",
            )


def _runs(root: Path) -> bool:
    return any(_read(comm).strip() == _DAEMON for comm in (root / "proc").glob("[0-9]*/comm"))


def _read(file: Path) -> str:
    """What is in a file; nothing if there is none, as of a process that has just ended."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    except OSError as error:
        raise UserError(f"{file}: {error.strerror}; run doctor as root") from None
