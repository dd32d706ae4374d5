"""Tests of `ovirt-placement`, run as an administrator runs it."""
