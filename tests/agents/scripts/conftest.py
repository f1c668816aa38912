"""A house for each story, as those of the lifecycle have it."""

from tests.agents.lifecycle.conftest import dialect, folder, home

__all__ = ["dialect", "folder", "home"]
