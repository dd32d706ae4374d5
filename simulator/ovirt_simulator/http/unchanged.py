"""What a body says that is so anyway: clients send back what they were shown, with their changes in it."""

from __future__ import annotations

from lxml import etree


def says_what_is(path: str, node: etree._Element, shown: etree._Element) -> bool:
    """Return whether an entity is shown with this very element at this path (from its root on)."""
    _, _, below = path.partition("/")
    return any(_alike(node, one) for one in shown.findall(below))


def contradicts(path: str, node: etree._Element, shown: etree._Element) -> bool:
    """Return whether an entity is shown with another text where this element, or one below it, has one."""
    _, _, below = path.partition("/")
    if len(node):
        return any(contradicts(f"{path}/{child.tag}", child, shown) for child in node.iterchildren("*"))
    texts = {_value(one) for one in shown.findall(below)}
    return bool((node.text or "").strip()) and bool(texts) and _value(node) not in texts


def _alike(given: etree._Element, shown: etree._Element) -> bool:
    """Return whether what is given is among what is shown; the addresses of entities do not matter."""
    if given.tag != shown.tag or given.get("id", shown.get("id")) != shown.get("id"):
        return False
    if _value(given) != _value(shown):
        return False
    return all(any(_alike(child, one) for one in shown) for child in given)


def _value(node: etree._Element) -> float | str:
    """Give the text of an element; a number can be written in several ways."""
    text = (node.text or "").strip()
    try:
        return float(text)
    except ValueError:
        return text
