"""PDF documents, by pypdf, which limits streams, cycles and depths itself."""

import io

import pypdf
from pypdf import PasswordType

from roost.drivers.text_extractor.formats.text_builder import TextBuilder
from roost.drivers.text_extractor.refusal import DocumentRefused, RefusalReason


def read_pdf(source: bytes) -> str:
    """Return the text of each page, also of a document that opens without a password. Raises DocumentRefused."""
    reader = pypdf.PdfReader(io.BytesIO(source))
    if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise DocumentRefused(RefusalReason.ENCRYPTED)
    builder = TextBuilder()
    for page in reader.pages:
        builder.add(page.extract_text() + "\n\n")
    return builder.build()
