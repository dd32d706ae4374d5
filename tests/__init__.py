"""Tests of all components, each in a folder that mirrors its source tree, and of how they work together."""
