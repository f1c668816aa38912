"""Text extraction: the plain text of a document."""
