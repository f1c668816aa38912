from collections.abc import Iterator

import pytest

from roost.hosts.edge.dependencies import ProxyLimits
from tests.hosts.edge.support import AGENT, TOKEN, Site, Wire, running_site

QUICK = ProxyLimits(
    first_head=0.5,
    keep_alive=1,
    linger=0.3,
    connect=0.4,
    body_idle=0.5,
    body_grace=0.6,
    body_rate=1000,
    response_head=0.8,
    idle=1.0,
    spare=0.4,
    spares=2,
    streams=4,
    tick=0.05,
)


@pytest.fixture(scope="module")
def _patient_site() -> Iterator[Site]:
    with running_site() as site:
        yield site


@pytest.fixture(scope="module")
def _quick_site() -> Iterator[Site]:
    with running_site(QUICK) as site:
        yield site


def _fresh(site: Site) -> Site:
    site.tokens = {AGENT: TOKEN}
    site.dial = None
    site.tell(AGENT)
    site.passages.clear()
    site.dials = 0
    return site


@pytest.fixture
def site(_patient_site: Site) -> Site:
    """A server with the usual bounds."""
    return _fresh(_patient_site)


@pytest.fixture
def quick(_quick_site: Site) -> Site:
    """A server whose times are short."""
    return _fresh(_quick_site)


@pytest.fixture
def wire(site: Site) -> Iterator[Wire]:
    with site.connect() as sock:
        yield Wire(sock)


@pytest.fixture
def quick_wire(quick: Site) -> Iterator[Wire]:
    with quick.connect() as sock:
        yield Wire(sock)
