"""The other form of documents: JSON for XML, and XML for JSON, as the engine's API pairs them.

Attributes and elements alike are properties. Whole numbers and flags are strings, as the engine writes them;
decimals are numbers, and times milliseconds since 1970. What may stand several times is always an array.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from lxml import etree

XML_TYPE, JSON_TYPE = "application/xml", "application/json"

_ATTRIBUTES = ("href", "id", "rel")
_TIMES = {"time", "start_time", "end_time", "last_updated", "creation_time", "stop_time", "date"}
#: Elements that hold decimals, with what they stand in.
_DECIMALS = {("value", "datum"), ("affinity_group", "priority"), ("cpu", "speed")}
#: Lists whose items are named otherwise than the list.
_LISTS = {
    "supported_versions",
    "vm_labels",
    "host_labels",
    "operation_systems",
    "enabled_features",
    "external_network_providers",
    "mediated_devices",
    "numa_nodes",
}


class NotJson(ValueError):
    """A body that is no JSON object."""


def to_json(document: bytes) -> bytes:
    """Write an XML document of the API as JSON."""
    text = json.dumps(_value(etree.fromstring(document), "") or {}, ensure_ascii=False, indent=2)
    # What a text could not hold in XML is not in it, so nothing here cannot be encoded.
    return text.encode()


def from_json(document: bytes, tag: str) -> etree._Element:
    """Read a JSON object as the element `tag`; raise `NotJson` for anything else."""
    try:
        found = json.loads(document)
        if not isinstance(found, dict):
            raise NotJson("a JSON object was expected")
        return _element(tag, found)
    except (ValueError, TypeError, RecursionError) as error:
        raise NotJson(str(error)) from None


def _value(node: etree._Element, parent: str) -> Any:
    if not node.attrib and not len(node):
        return _scalar(node, parent)
    found: dict[str, Any] = {str(name): str(value) for name, value in node.attrib.items()}
    for child in node:
        tag, value = str(child.tag), _value(child, str(node.tag))
        if tag == "link" or _is_list(str(node.tag), tag):
            found.setdefault(tag, []).append(value)
        else:
            found[tag] = value
    return found


def _scalar(node: etree._Element, parent: str) -> Any:
    tag, text = str(node.tag), node.text or ""
    if not text:
        return {} if tag.endswith("s") else ""
    if tag in _TIMES:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    if (parent, tag) in _DECIMALS:
        return float(text)
    return text


def _is_list(parent: str, tag: str) -> bool:
    return parent in _LISTS or f"_{parent}".endswith((f"_{tag}s", f"_{tag.removesuffix('y')}ies"))


def _element(tag: str, value: Any) -> etree._Element:
    node = etree.Element(tag)
    if not isinstance(value, dict):
        node.text = _text(value)
        return node
    for name, inside in value.items():
        if name in _ATTRIBUTES and isinstance(inside, str):
            node.set(name, inside)
        elif inside is not None:
            node.extend(_element(name, each) for each in (inside if isinstance(inside, list) else [inside]))
    return node


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
