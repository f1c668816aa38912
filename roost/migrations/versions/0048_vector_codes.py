"""A row for each chunk, with its vector; segments keep codes of the vectors, which a search reads first."""  # noqa: INP001 - Alembic loads it by its path

import json

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0047"

_segments = sa.table("vector_segments", *map(sa.column, ("file_id", "number", "matrix", "chunks", "codes")))
_chunks = sa.table("vector_chunks", *map(sa.column, ("file_id", "number", "chunk", "vector")))
_s = _segments.c
_key = sa.ForeignKey("file_vectors.file_id", name="fk_vector_chunks_file_id_file_vectors", ondelete="CASCADE")


def upgrade() -> None:
    op.create_table(
        "vector_chunks",
        sa.Column("file_id", sa.String(36), _key, nullable=False),
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("chunk", sa.Text(), nullable=False),
        sa.Column("vector", sa.LargeBinary()),
        sa.PrimaryKeyConstraint("file_id", "number", name="pk_vector_chunks"),
    )
    op.add_column("vector_segments", sa.Column("codes", sa.LargeBinary()))
    connection = op.get_bind()
    for file_id, number in connection.execute(sa.select(_s.file_id, _s.number)).all():
        same = (_s.file_id == file_id, _s.number == number)
        matrix, texts = connection.execute(sa.select(_s.matrix, _s.chunks).where(*same)).one()
        chunks = [json.dumps(chunk, separators=(",", ":")) for chunk in json.loads(texts)]
        size = len(matrix or b"") // len(chunks)
        vectors = [matrix and matrix[at * size : at * size + size] for at in range(len(chunks))]
        rows = zip(range(number * 64, number * 64 + len(chunks)), chunks, vectors, strict=True)
        values = [{"file_id": file_id, "number": at, "chunk": chunk, "vector": vector} for at, chunk, vector in rows]
        connection.execute(_chunks.insert(), values)
        codes = matrix and _encode(matrix, len(chunks))
        connection.execute(_segments.update().where(*same).values(codes=codes, matrix=None, chunks=""))
    op.drop_column("vector_segments", "matrix")
    op.drop_column("vector_segments", "chunks")


def _encode(matrix: bytes, count: int) -> bytes:
    import numpy as np

    vectors = np.frombuffer(matrix, "<f4").reshape(count, -1)
    codes = np.empty(count, [("scale", "<f4"), ("bound", "<f4"), ("numbers", "i1", vectors.shape[1:])])
    codes["scale"] = np.maximum(np.abs(vectors).max(axis=1), 1e-30) / 127
    codes["numbers"] = np.rint(vectors / codes["scale"][:, None])
    codes["bound"] = np.linalg.norm(vectors - codes["numbers"] * codes["scale"][:, None], axis=1) + 1e-4
    return codes.tobytes()
