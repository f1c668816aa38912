import pytest


@pytest.fixture
def dialect() -> str:
    """Use SQLite only; tests about the database override this."""
    return "sqlite"
