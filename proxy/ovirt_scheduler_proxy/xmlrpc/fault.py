"""Faults: what a caller gets in place of an answer, with the codes that XML-RPC servers agreed upon."""

from __future__ import annotations

NOT_WELL_FORMED = -32700
INVALID_REQUEST = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMETERS = -32602
INTERNAL_ERROR = -32603


class Fault(Exception):
    """The call cannot be answered; the text says why, for the reader of the engine's log."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
