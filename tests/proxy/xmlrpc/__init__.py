"""Tests of XML-RPC."""
