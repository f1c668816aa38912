"""Fixtures of the lifecycle tests: a server for each test."""

from tests.agents.lifecycle.workflows.conftest import dialect, env, folder

__all__ = ["dialect", "env", "folder"]
