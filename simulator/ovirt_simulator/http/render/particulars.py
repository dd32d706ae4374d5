"""What the simulator keeps and nothing depends on: as an engine has it, or as a client gave it."""

from __future__ import annotations

from collections.abc import Mapping

from lxml import etree

from ovirt_simulator.http.markup import element, lines


class Usual:
    """Elements of one kind of entity, by name: what is inside of them unless a client gave something else."""

    def __init__(self, inside: Mapping[str, str]) -> None:
        self._inside = inside
        #: Of most entities nothing was given: these are rendered once for all.
        self._plain: dict[tuple[str, ...], str] = {}

    def shown(self, others: Mapping[str, str], *tags: str) -> str:
        """Render these elements, each on a line of its own; what is neither given nor usual is absent."""
        if others:
            return self._rendered(others, tags)
        if tags not in self._plain:
            self._plain[tags] = self._rendered({}, tags)
        return self._plain[tags]

    def _rendered(self, others: Mapping[str, str], tags: tuple[str, ...]) -> str:
        rendered = (with_given(others, tag, self._inside.get(tag, "")) for tag in tags)
        return lines(*(markup for markup in rendered if not markup.endswith("/>")))


def with_given(others: Mapping[str, str], tag: str, usual: str) -> str:
    """Render an element with what was given put in its place, and else as usual."""
    markup = element(tag, usual)
    given = {path: others[path] for path in others if path == tag or path.startswith(f"{tag}/")}
    if not given:
        return markup
    root = etree.fromstring(markup)
    for path, inside in given.items():
        _put(root, path.split("/")[1:], inside)
    return etree.tostring(root, encoding="unicode")


def _put(node: etree._Element, path: list[str], inside: str) -> None:
    """Put markup inside of what stands at the path, which is made where it is not there."""
    for tag in path:
        if tag == "@id":
            node.set("id", inside)
            return
        found = node.find(tag)
        node = etree.SubElement(node, tag) if found is None else found
    new = etree.fromstring(f"<{node.tag}>{inside}</{node.tag}>")
    node.text = new.text
    for child in list(node):
        node.remove(child)
    node.extend(list(new))
