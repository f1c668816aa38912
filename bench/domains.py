"""A look-up of a host name among many registered domains, compared with one among few.

Each look-up is of another name than the one before, and all names take turns.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.row import Row
from bench.timing import take_turns
from roost.domain_names.model import Domain
from roost.http.stack.address import HostAddresses
from tests.domain_names.samples import make_domain

_FEW, _MANY = 10, 10_000
_LOOKUPS = 100_000


def run(_folder: Path) -> Iterator[Row]:
    few, many = take_turns(_prepare(_FEW), _prepare(_MANY))
    yield Row(f"look-up among {_MANY:,} domains", many, "us", f"among {_FEW}", few, "<= 5 x")


def _prepare(count: int) -> Callable[[], float]:
    """Return a function that measures the microseconds of a look-up."""
    domains = {domain.name: domain for domain in map(_domain, range(count))}
    addresses = HostAddresses(domains=domains)
    hosts = [f"{name}:8642" for name in domains] * (_LOOKUPS // count)
    random.shuffle(hosts)
    return lambda: _time_lookups(addresses, hosts) / len(hosts) * 1e6


def _time_lookups(addresses: HostAddresses, hosts: Sequence[str]) -> float:
    began = time.perf_counter()
    for host in hosts:
        addresses.parse(host)
    return time.perf_counter() - began


def _domain(number: int) -> Domain:
    return make_domain(f"app{number}.example.com", f"agent{number}", port=8000)
