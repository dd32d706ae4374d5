"""The CPU types that clusters can have, by compatibility version: names, levels and architectures.

Source: the engine's configuration value ServerCPUList, read by CpuFlagsManagerHandler.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from .entities import Record


class CpuType(Record, frozen=True):
    name: str
    #: Among those of its vendor, the more the newer.
    level: int
    #: The REST API's Architecture.
    architecture: str = "x86_64"

    @property
    def vendor(self) -> str:
        """Intel, AMD, or an architecture of IBM's."""
        if self.architecture != "x86_64":
            return self.architecture
        return self.name.removeprefix("Secure ").partition(" ")[0]

    @property
    def plain(self) -> bool:
        """Whether it needs no more of a CPU than its model: no mitigation of Spectre and the like."""
        return not self.name.startswith("Secure ") and "SSBD" not in self.name and "IBRS" not in self.name


#: What the hosts here are: they have its flags and those of all plain ones of Intel below, and no others.
_HOSTS_MODEL = ("Intel Skylake Server Family", "Intel Skylake Client Family")
_MITIGATIONS = ("IBRS", "IBRS SSBD", "IBRS SSBD MDS")
_OLD_MODELS = ("Westmere", "SandyBridge", "Haswell-noTSX", "Haswell", "Broadwell-noTSX", "Broadwell")
_MODELS = (
    "Nehalem",
    "Westmere",
    "SandyBridge",
    "IvyBridge",
    "Haswell",
    "Broadwell",
    "Skylake Client",
    "Skylake Server",
    "Cascadelake Server",
)
_S390 = ("IBM z114, z196", "IBM zBC12, zEC12", "IBM z13s, z13", "IBM z14")


def of_version(version: str) -> tuple[CpuType, ...]:
    """Give the types of a version in the engine's order; none of one that it does not support."""
    return _of_all_versions().get(version, ())


def find(name: str, version: str) -> CpuType | None:
    return next((each for each in of_version(version) if each.name == name), None)


def of_hosts(version: str) -> CpuType:
    """Give the highest type of a version whose flags the hosts here have; without any, that of the latest."""
    known = of_version(version) or of_version("4.8")
    return next(each for name in _HOSTS_MODEL for each in known if each.name == name)


def hosts_have(wanted: CpuType, version: str) -> bool:
    """Say whether the hosts here have all flags of a type."""
    own = of_hosts(version)
    return wanted.plain and wanted.vendor == own.vendor and wanted.level <= own.level


@cache
def _of_all_versions() -> dict[str, tuple[CpuType, ...]]:
    since_4_5 = _with_secure((*_MODELS, "Icelake Server"))
    latest = _with_secure((*_MODELS, "Icelake Server", "Sapphire Rapids Server"))
    amd, power = _amd_since_4_4(), _numbered(("IBM POWER8", "IBM POWER9"), "ppc64")
    s390 = _numbered(_S390, "s390x")
    return {
        "4.2": _of_4_2(),
        "4.3": _of_4_3(),
        "4.4": (*_with_secure(_MODELS), *amd, *power, *s390),
        **dict.fromkeys(("4.5", "4.6", "4.7"), (*since_4_5, *amd, *power, *s390)),
        "4.8": (
            *latest,
            *amd,
            *_amd_since_4_8(),
            *_numbered(("IBM POWER8", "IBM POWER9", "IBM POWER10"), "ppc64"),
            *s390,
        ),
    }


def _of_4_2() -> tuple[CpuType, ...]:
    models = ("Nehalem", *_OLD_MODELS, "Skylake Client")
    names = [_intel("Conroe"), _intel("Penryn")]
    names += [_intel(model, each) for model in models for each in ("", *_MITIGATIONS)]
    amd = [f"AMD Opteron G{number}" for number in range(1, 6)]
    return (*_numbered(names, first=3), *_numbered(amd, first=2), _power8(3))


def _of_4_3() -> tuple[CpuType, ...]:
    mitigations = _MITIGATIONS[1:]
    others = (*_OLD_MODELS, "Skylake Client", "Skylake Server")
    return (
        CpuType(name=_intel("Nehalem"), level=5),
        *_numbered([_intel("Nehalem", each) for each in mitigations], first=7),
        *_numbered([_intel(model, each) for model in others for each in ("", *mitigations)], first=9),
        *_numbered(("AMD Opteron G4", "AMD Opteron G5", "AMD EPYC"), first=5),
        CpuType(name="AMD EPYC IBPB SSBD", level=9),
        _power8(3),
        CpuType(name="IBM POWER9", level=4, architecture="ppc64"),
        *_numbered(_S390, "s390x", first=2),
    )


def _amd_since_4_4() -> list[CpuType]:
    return _numbered(("AMD Opteron G4", "AMD Opteron G5", "AMD EPYC", "Secure AMD EPYC"))


def _amd_since_4_8() -> list[CpuType]:
    names = ("EPYC-Rome", "EPYC-Milan", "EPYC-Milan-v2", "EPYC-Genoa")
    rome, *newer = (f"AMD {name}" for name in names)
    return _numbered((rome, f"Secure {rome}", *newer), first=5)


def _with_secure(models: Iterable[str]) -> list[CpuType]:
    return _numbered([f"{word}{_intel(model)}" for model in models for word in ("", "Secure ")])


def _intel(model: str, mitigations: str = "") -> str:
    return " ".join(filter(None, ("Intel", model, mitigations, "Family")))


def _power8(level: int) -> CpuType:
    return CpuType(name="IBM POWER8", level=level, architecture="ppc64")


def _numbered(names: Iterable[str], architecture: str = "x86_64", first: int = 1) -> list[CpuType]:
    return [
        CpuType(name=name, level=level, architecture=architecture) for level, name in enumerate(names, first)
    ]
