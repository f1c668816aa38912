"""Lets the tests import the modules that build images, which are no package."""

import sys

from tests.architecture.code import ROOT

sys.path.insert(0, str(ROOT / "deploy/images"))
