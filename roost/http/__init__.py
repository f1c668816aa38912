"""The HTTP stack and its hosts; the only package that imports every `api.py`."""
