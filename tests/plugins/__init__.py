"""Tests of the policy units, in our proxy and in the manner of the old one."""
