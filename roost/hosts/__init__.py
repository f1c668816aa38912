"""The addresses that Roost serves; the only room that imports every `api.py`."""
