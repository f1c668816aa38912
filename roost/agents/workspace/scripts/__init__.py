"""The `build` and `start` scripts of an agent's manifest."""
