"""Tests of the API by its own description: Schemathesis against a server with real containers."""
