"""The other form of documents: JSON for XML, and XML for JSON, as the engine's API pairs them.

Attributes and elements alike are properties. Whole numbers and flags are strings, as the engine writes them;
decimals are numbers, and times milliseconds since 1970. What may stand several times is always an array.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from lxml import etree

XML_TYPE, JSON_TYPE = "application/xml", "application/json"

_ATTRIBUTES = ("href", "id", "rel")
_TIME_NAMES = (
    "time start_time end_time stop_time creation_time creation_date modification_date date issued "
    "last_updated last_cinder_backup last_db_backup last_dwh_backup last_engine_backup last_grafana_backup "
    "last_keycloak_backup"
)
_TIMES = frozenset(_TIME_NAMES.split())
#: Elements that hold decimals, with what they stand in.
_DECIMALS = {("value", "datum"), ("affinity_group", "priority"), ("cpu", "speed")}
#: Lists whose items are named otherwise than the list.
_LIST_NAMES = (
    "affinity_group_mappings affinity_label_mappings authentication_keys cluster_mappings compute_resources "
    "cpu_units devices discovered_hosts discovered_targets domain_mappings driver_options "
    "driver_sensitive_options enabled_features external_network_providers host_groups host_labels images "
    "katello_errata lun_mappings mediated_devices modified_bonds modified_labels networks nics numa_nodes "
    "operation_systems options removed_bonds removed_labels role_mappings search_domains servers slaves "
    "spec_params storages subnets supported_versions user_options values virtual_function_allowed_labels "
    "vm_labels vnic_profile_mappings volume_types"
)
_LISTS = frozenset(_LIST_NAMES.split())


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
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
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
    if parent == tag == "weight":  # the weights of a scheduling policy
        return True
    return parent in _LISTS or f"_{parent}".endswith((f"_{tag}s", f"_{tag.removesuffix('y')}ies"))


def _element(tag: str, value: Any) -> etree._Element:
    node = etree.Element(tag)
    if not isinstance(value, dict):
        node.text = _text(tag, value)
        return node
    for name, inside in value.items():
        if name in _ATTRIBUTES and isinstance(inside, str):
            node.set(name, inside)
        elif inside is not None:
            node.extend(_elements(tag, name, inside))
    return node


def _elements(parent: str, tag: str, value: Any) -> list[etree._Element]:
    """Read a property; what may stand several times must be an array, and all else must be none."""
    if isinstance(value, list) != (tag == "link" or _is_list(parent, tag)):
        raise NotJson(f"{parent}.{tag} is an array, or is none")
    return [_element(tag, each) for each in (value if isinstance(value, list) else [value])]


def _text(tag: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if tag in _TIMES and isinstance(value, int):
        return datetime.fromtimestamp(value / 1000, UTC).isoformat()
    return str(value)
