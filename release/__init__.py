"""Builds what is published: the documentation site, and the files of a release."""
