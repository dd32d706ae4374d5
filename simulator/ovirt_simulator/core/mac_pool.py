"""MAC pools: the default one, which every engine has, and those that clusters may have instead."""

from __future__ import annotations

from .entities import Record, stable_id


class MacPool(Record, frozen=True):
    id: str
    name: str
    description: str = ""
    allow_duplicates: bool = False
    #: Only of the pool that every engine has.
    default: bool = False
    #: The first and the last address of each.
    ranges: tuple[tuple[str, str], ...] = ()


#: What the addresses of NICs begin with.
VENDOR = "56:6f"
DEFAULT_POOL = MacPool(
    id=stable_id("mac_pool", "Default"),
    name="Default",
    description="Default MAC pool",
    default=True,
    ranges=((f"{VENDOR}:00:00:00:00", f"{VENDOR}:ff:ff:ff:ff"),),
)
