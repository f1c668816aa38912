"""Program that embeds texts with all-MiniLM-L6-v2 in a sandbox.

A request is a line with a size, and that many bytes of JSON: a list of texts. An answer is a line with a size, and the
vectors of the texts, float32 in little-endian order. The files of model and tokenizer are verified before use.
"""

import ctypes
import hashlib
import json
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

onnxruntime: Any = import_module("onnxruntime")  # it has no types

_MODEL = ("model/model.onnx", "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6")
_TOKENIZER = ("tokenizer/tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037")
_MAX_TOKENS = 256
_THREADS = 2
_ERRORS_ONLY = 3
_SET_DUMPABLE = 4  # PR_SET_DUMPABLE, linux/prctl.h


class MiniLM:
    """The model, which works on one batch at a time."""

    def __init__(self, folder: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = _THREADS
        options.inter_op_num_threads = 1
        options.enable_mem_pattern = False  # it keeps memory for each length of a batch, and saves no time
        options.log_severity_level = _ERRORS_ONLY
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # others need the CPU, too
        self._session = onnxruntime.InferenceSession(_verified_path(folder, *_MODEL), options)
        self._tokenizer: Any = Tokenizer.from_file(_verified_path(folder, *_TOKENIZER))
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._tokenizer.enable_padding()

    def embed(self, texts: Sequence[str]) -> bytes:
        """Return the mean of the vectors of each text's tokens, of length 1."""
        encoded = self._tokenizer.encode_batch(texts)
        ids = np.array([text.ids for text in encoded], np.int64)
        mask = np.array([text.attention_mask for text in encoded], np.int64)
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (tokens,) = self._session.run(["last_hidden_state"], inputs)
        weights = mask[..., np.newaxis].astype(np.float32)
        means = (tokens * weights).sum(axis=1) / weights.sum(axis=1)
        vectors: Any = means / np.linalg.norm(means, axis=1, keepdims=True)
        return vectors.astype("<f4").tobytes()


def serve_batches(connection: socket.socket, model: MiniLM) -> None:
    """Answer requests until the server closes the connection."""
    connection.sendall(b"\n")
    with suppress(OSError), connection.makefile("rb") as stream:
        while line := stream.readline():
            answer = model.embed(json.loads(stream.read(int(line))))
            connection.sendall(b"%d\n" % len(answer))
            connection.sendall(answer)


def _verified_path(folder: Path, name: str, sha256: str) -> str:
    path = folder / name
    if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
        sys.exit(f"{name} is not the file that this version of Roost was made for; install Roost again")
    return str(path)


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0)
    serve_batches(socket.socket(fileno=int(sys.argv[1])), MiniLM(Path(__file__).parent))
