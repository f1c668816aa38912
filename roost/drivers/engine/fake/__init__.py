"""A fake engine for tests, which passes the same conformance suite."""
