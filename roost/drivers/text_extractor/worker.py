"""Program that reads documents in a sandbox, each in a process of its own.

A request has `name` and `mime_type`; an answer is a line of JSON (`{}`, or `refused` with a reason) and the text.
"""

import json
import logging
import socket
import sys
import warnings
from typing import Any

from roost.drivers.sandbox.forked_requests import RequestLimits, serve_requests
from roost.drivers.text_extractor.contract import TEXT_LIMIT, TIME_LIMIT_SECONDS
from roost.drivers.text_extractor.formats.detection import DocumentRefused
from roost.drivers.text_extractor.formats.reading import read_document

_LIMITS = RequestLimits(1024**3, int(TIME_LIMIT_SECONDS) + 5, 4 * TEXT_LIMIT + 1024)


def answer_request(request: dict[str, Any], source: bytes) -> bytes:
    try:
        text = read_document(source, request["name"], request["mime_type"])
    except DocumentRefused as refused:
        return json.dumps({"refused": refused.reason}).encode()
    return b"{}\n" + text.encode()


if __name__ == "__main__":
    logging.disable()  # libraries warn about each document
    warnings.simplefilter("ignore")
    serve_requests(socket.socket(fileno=int(sys.argv[1])), answer_request, _LIMITS)
