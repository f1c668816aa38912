"""A server for each story, as those of the lifecycle have it."""

from tests.agents.lifecycle.conftest import dialect, env, folder

__all__ = ["dialect", "env", "folder"]
