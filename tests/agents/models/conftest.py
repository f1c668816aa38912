import pytest


@pytest.fixture
def dialect() -> str:
    """These tests are not about the database; those that are ask for both in place."""
    return "sqlite"
