"""Reads an answer in JSON as a program would: held against the schema that is shipped, names left out."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from tests.paths import CHECKOUT

SCHEMA = CHECKOUT / "docs" / "json.schema.json"


def parsed(text: str) -> Any:
    """The answer; fails unless it meets the schema."""
    document = json.loads(text)
    _validator().validate(document)
    return document


def plain(text: str) -> Any:
    """The answer with ids in place of what has an id and a name; fails unless it meets the schema."""
    return without_names(parsed(text))


def without_names(found: Any) -> Any:
    if isinstance(found, dict):
        if found.keys() == {"id", "name"}:
            return found["id"]
        return {key: without_names(value) for key, value in found.items()}
    return [without_names(one) for one in found] if isinstance(found, list) else found


@cache
def _validator() -> Draft202012Validator:
    """Stricter than what is shipped: nothing may stand in an answer that the schema does not name."""
    schema = json.loads(SCHEMA.read_text())
    for definition in schema["$defs"].values():
        if "properties" in definition:
            definition["additionalProperties"] = False
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)
