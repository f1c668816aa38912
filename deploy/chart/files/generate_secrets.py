"""Create the Secrets of a release with random values, those that are missing: `generate_secrets.py RELEASE NAMESPACE`.

Runs in a Job of the chart, with the standard library only. It never reads or changes a Secret that exists.
"""

import json
import os
import secrets
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path

ACCOUNT = Path(os.environ.get("SERVICE_ACCOUNT_FOLDER", "/var/run/secrets/kubernetes.io/serviceaccount"))
API = os.environ.get("KUBERNETES_API", "https://kubernetes.default.svc")
TIMEOUT_SECONDS = 30


def main() -> None:
    release, namespace = sys.argv[1:]
    for name, values in generate_values(release).items():
        print(f"{name}: {'created' if create_secret(namespace, name, values) else 'exists'}")


def generate_values(release: str) -> Mapping[str, Mapping[str, str]]:
    """Return the values of each Secret by name."""
    password = secrets.token_hex(24)
    return {
        f"{release}-keys": {"kek": secrets.token_hex(32), "metrics-token": secrets.token_hex(24)},
        f"{release}-database": {
            "password": password,
            "url": f"postgresql://roost:{password}@{release}-postgresql/roost",
        },
        f"{release}-bucket": {
            "AWS_ACCESS_KEY_ID": f"roost-{secrets.token_hex(6)}",
            "AWS_SECRET_ACCESS_KEY": secrets.token_hex(24),
        },
    }


def create_secret(namespace: str, name: str, values: Mapping[str, str]) -> bool:
    """Create a Secret and return True, or return False if it exists. Raises OSError."""
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": "Opaque", "stringData": values}
    request = urllib.request.Request(
        f"{API}/api/v1/namespaces/{namespace}/secrets",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}", "Content-Type": "application/json"},
    )
    context = ssl.create_default_context(cafile=ACCOUNT / "ca.crt") if API.startswith("https:") else None
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )  # the API server is in the cluster, whatever proxy there is
    try:
        with opener.open(request, timeout=TIMEOUT_SECONDS):
            return True
    except urllib.error.HTTPError as error:
        if error.code == 409:
            return False
        raise


if __name__ == "__main__":
    main()
