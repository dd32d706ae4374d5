"""What a body says of a VM or cluster that the simulator keeps, shows again, and does not go by."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from lxml import etree

from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.kept import LISTS
from ovirt_simulator.http.markup import content


def given(body: Body, kept: Collection[str]) -> dict[str, str]:
    """Give the markup inside of each element to be kept that the body has, by its path."""
    markup = "".join(body.elements().values())
    return dict(_leaves(etree.fromstring(f"<given>{markup}</given>"), "", kept))


def changed(given: Mapping[str, str], shown: str, kept: Collection[str]) -> dict[str, str]:
    """Give what is not as an entity, rendered, shows it already."""
    present = dict(_leaves(etree.fromstring(shown), "", kept))
    return {path: inside for path, inside in given.items() if present.get(path) != inside}


def _leaves(node: etree._Element, above: str, kept: Collection[str]) -> list[tuple[str, str]]:
    found = []
    for child in node:
        path = f"{above}{child.tag}"
        if f"{path}/@id" in kept:
            found.append((f"{path}/@id", content(child.get("id") or "")))
            continue
        if path in kept and path in LISTS:
            items = (etree.tostring(item, encoding="unicode", with_tail=False).strip() for item in child)
            found.append((path, "".join(items)))
        elif path in kept:
            found.append((path, content((child.text or "").strip())))
        else:
            found += _leaves(child, f"{path}/", kept)
    return found
