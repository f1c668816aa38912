"""Quantities of resources, and how much pods ask for."""

import re
from decimal import Decimal

from tests.support.kubernetes.resources import Object

_BINARY = {"Ei": 1 << 60, "Pi": 1 << 50, "Ti": 1 << 40, "Gi": 1 << 30, "Mi": 1 << 20, "Ki": 1 << 10}
_DECIMAL = {"E": 10**18, "P": 10**15, "T": 10**12, "G": 10**9, "M": 10**6, "k": 1000, "": 1,
            "m": Decimal("0.001"), "u": Decimal("1e-6"), "n": Decimal("1e-9")}  # fmt: skip
_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([numk]|[KMGTPE]i|[MGTPE]|)")
_MESSAGE = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def parse_quantity(text: object) -> Decimal:
    """Return the number. Raises ValueError."""
    found = _FORM.fullmatch(str(text))
    if not found:
        raise ValueError(_MESSAGE)
    return Decimal(found[1]) * ({**_DECIMAL, **_BINARY})[found[2]]


def show_quantity(number: Decimal, *, binary: bool = False) -> str:
    """Return a number in the canonical form: the largest suffix that leaves a whole number."""
    if not number:
        return "0"
    factors = _BINARY if binary and abs(number) >= 1024 else _DECIMAL
    suffix = next((suffix for suffix, factor in factors.items() if number % factor == 0), "")
    return f"{int(number / factors.get(suffix, 1))}{suffix}"


def normalize_quantity(text: object) -> str:
    """Return a quantity as the server stores it. Raises ValueError."""
    return show_quantity(parse_quantity(text), binary=str(text).endswith("i"))


def pod_requests(spec: Object, kind: str = "requests") -> dict[str, Decimal]:
    """Return the sums of the requests, or limits, of a pod's containers."""
    found: dict[str, Decimal] = {}
    for container in spec.get("containers", ()):
        for name, text in container.get("resources", {}).get(kind, {}).items():
            found[name] = found.get(name, Decimal(0)) + parse_quantity(text)
    return found
