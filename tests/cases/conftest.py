"""What tests of recorded states share."""

from __future__ import annotations

import pytest

from tests.cases.asking import Ask


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    return Ask(capsys)
