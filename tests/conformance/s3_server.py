"""A server of the S3 protocol in a process of its own: `python -m tests.conformance.s3_server`.

It prints its port. Buckets whose names begin with `lax` replace objects silently, as some services do.
"""

import os
import subprocess
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def s3_server() -> Generator[str]:
    """The address of one that runs."""
    environment = {**os.environ, "MOTO_S3_CUSTOM_ENDPOINTS": ""}
    argv = [sys.executable, "-m", "tests.conformance.s3_server"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.fixture(scope="session")
def s3_address() -> Iterable[str]:
    with s3_server() as address:
        yield address


def use(patch: pytest.MonkeyPatch, address: str, bucket: str) -> str:
    """Have that bucket and the environment of somebody who may use it; its address."""
    enter(patch, address)
    client(address).create_bucket(Bucket=bucket)
    return f"s3://{bucket}/some/prefix"


def enter(patch: pytest.MonkeyPatch, address: str) -> None:
    """Have the environment of somebody who may use the service there."""
    for name, value in {
        "AWS_ENDPOINT_URL": address,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }.items():
        patch.setenv(name, value)


def client(address: str) -> Any:
    """Another client of the protocol, to look at what is there."""
    import boto3

    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    return boto3.client("s3", endpoint_url=address, **keys)


def main() -> None:
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    moto = DomainDispatcherApplication(create_backend_app)

    def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["PATH_INFO"].startswith("/lax"):
            environ.pop("HTTP_IF_NONE_MATCH", None)
        return moto(environ, start_response)

    server = make_server("127.0.0.1", 0, application, threaded=True)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
