"""Membership of files in groups, over HTTP."""
