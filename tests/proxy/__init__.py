"""Tests of the proxy: most of them run it as a process and speak to it over HTTP."""
