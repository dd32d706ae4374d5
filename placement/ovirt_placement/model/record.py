"""What all records are made of: immutable, typed, and written as JSON without what has its default value."""

import msgspec


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """What rules and answers consist of."""


class Struct(Record, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What a cluster consists of: decoded strictly.

    Such records form no cycles; with tens of thousands of them, the garbage collector's looking for some
    would be what an answer to the engine takes longest for.
    """
