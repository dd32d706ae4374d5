"""Properties of a unit: what the engine takes passes, and what it refuses is reported."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ovirt_scheduler_proxy import units


@pytest.mark.parametrize(
    "text", ["", "a=b", "a=b;", "a_B1=[0-9]*;c=True|False", "a=", "a==", "minimum_host_memoryMB=[0-9]*;b=.*"]
)
def test_properties_that_the_engine_takes(text: str) -> None:
    assert units.property_problems(text) == []


@pytest.mark.parametrize(
    "text", ["a", "=b", "a b=c", "{a=b}", "a=b;;", "a=b;c", "a=b; c=d", "ä=b", "a=b;a=c", ";"]
)
def test_properties_that_the_engine_refuses(text: str) -> None:
    assert units.property_problems(text)


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_A-Z0-9]+", fullmatch=True), st.text(st.characters(categories=["L", "N", "Zs"]))
    )
)
def test_keys_and_expressions_make_properties(pairs: dict[str, str]) -> None:
    assert units.property_problems(";".join(f"{key}={value}" for key, value in pairs.items())) == []
