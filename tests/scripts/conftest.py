"""Lets the tests import the scripts, which are no package."""

import sys

from tests.architecture.code import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
