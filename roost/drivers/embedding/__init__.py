"""Embedding models: texts as vectors, of which similar texts have near ones."""
