"""Common ground without business words: imports nothing else of Roost."""
