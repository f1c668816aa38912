import pytest

from roost.net.guarded_transport import is_loopback_url


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9:8080", "[::1]", "localhost:5001", "node.localhost"])
def test_urls_of_this_machine(host: str) -> None:
    assert is_loopback_url(f"http://{host}/x")


@pytest.mark.parametrize("host", ["example.com", "10.0.0.1", "localhost.example", "notlocalhost", "[fd00::1]"])
def test_urls_of_other_machines(host: str) -> None:
    assert not is_loopback_url(f"http://{host}/x")
