"""Weights of control groups as the tests of priorities read them."""

import pytest

from roost.drivers.runtime.bwrap.start import get_controllers

HAS_WEIGHTS = get_controllers().weights_problem is None
weights = pytest.mark.skipif(not HAS_WEIGHTS, reason=str(get_controllers().weights_problem))


def weight_of(name: str) -> int:
    """Return the weight of a group as a multiple of the agents' together."""
    cpu = next(controller for controller in get_controllers().usable if controller.name == "cpu")
    file, unit = {1: ("cpu.shares", 1024), 2: ("cpu.weight", 100)}[cpu.version]
    return int((cpu.base / name / file).read_text()) // unit
