"""The outside world, one folder a kind: `contract.py`, `fake.py`, and one module or folder for each implementation."""
