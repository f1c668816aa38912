"""A server of the S3 protocol in its own process: `python -m tests.conformance.s3_server`.

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
    """Run a server and yield its address."""
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


def use_bucket(patch: pytest.MonkeyPatch, address: str, bucket: str) -> str:
    """Create a bucket, set the environment of its user, and return its address."""
    set_environment(patch, address)
    create_client(address).create_bucket(Bucket=bucket)
    return f"s3://{bucket}/some/prefix"


def set_environment(patch: pytest.MonkeyPatch, address: str) -> None:
    """Set the environment of a user of the service."""
    for name, value in {
        "AWS_ENDPOINT_URL": address,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }.items():
        patch.setenv(name, value)


def create_client(address: str) -> Any:
    """Return another client of the protocol, to inspect objects."""
    import boto3

    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret", "region_name": "us-east-1"}
    return boto3.client("s3", endpoint_url=address, **keys)


def main() -> None:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
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
