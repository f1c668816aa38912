"""The list of an image's software as SPDX 2.3: packages of Debian, of Python with their hashes, and of npm."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

_UNKNOWN = "NOASSERTION"


@dataclass(frozen=True, order=True)
class Package:
    """A package by the kind, the name and the version of package URLs; `licence` as the package itself says."""

    kind: str
    name: str
    version: str
    licence: str = ""

    @property
    def address(self) -> str:
        return f"pkg:{self.kind}/{quote(self.name, safe='/')}@{quote(self.version)}"


def list_debian(root: Path) -> Iterator[Package]:
    """Read the status of dpkg, or its parts in images without a package manager."""
    folder = root / "var/lib/dpkg"
    files = [folder / "status", *sorted((folder / "status.d").glob("*"))]
    for file in files:
        if file.is_file() and file.suffix != ".md5sums":
            for paragraph in re.split(r"\n\n+", file.read_text(errors="replace").strip()):
                fields = HeaderParser().parsestr(paragraph)
                if fields["Package"] and "installed" in fields.get("Status", "installed").split()[-1:]:
                    yield Package("deb", f"debian/{fields['Package']}", fields["Version"])


def list_python(folder: Path) -> Iterator[Package]:
    """Read what installers say of the packages below a folder."""
    for file in folder.rglob("*.dist-info/METADATA"):
        fields = HeaderParser().parsestr(file.read_text(errors="replace"))
        name = re.sub(r"[-_.]+", "-", fields["Name"]).lower()
        yield Package("pypi", name, fields["Version"], fields.get("License-Expression", ""))


def list_npm(folder: Path) -> Iterator[Package]:
    """Read the lock that npm leaves in each folder of modules."""
    for file in folder.rglob("node_modules/.package-lock.json"):
        for path, entry in json.loads(file.read_text())["packages"].items():
            name = entry.get("name") or path.rpartition("node_modules/")[2]
            licence = entry.get("license", "")
            if name and "version" in entry:
                yield Package("npm", name, entry["version"], licence if isinstance(licence, str) else "")


def render_sbom(name: str, packages: Sequence[Package], created: str) -> bytes:
    """Return the document; the same packages give the same bytes."""
    listed = sorted(set(packages))
    document = "SPDXRef-DOCUMENT"
    ids = {package: f"SPDXRef-{hashlib.sha256(package.address.encode()).hexdigest()[:16]}" for package in listed}
    digest = hashlib.sha256("\n".join(package.address for package in listed).encode()).hexdigest()
    return json.dumps(
        {
            "spdxVersion": "SPDX-2.3",
            "dataLicense": "CC0-1.0",
            "SPDXID": document,
            "name": name,
            "documentNamespace": f"https://spdx.org/spdxdocs/{quote(name, safe='')}-{digest[:32]}",
            "creationInfo": {"created": created, "creators": ["Tool: roost-images"]},
            "packages": [_describe(package, ids[package]) for package in listed],
            "relationships": [
                {"spdxElementId": document, "relationshipType": "DESCRIBES", "relatedSpdxElement": ids[package]}
                for package in listed
            ],
        },
        indent=1,
    ).encode()


def _describe(package: Package, identifier: str) -> Mapping[str, Any]:
    reference = {
        "referenceCategory": "PACKAGE-MANAGER",
        "referenceType": "purl",
        "referenceLocator": package.address,
    }
    return {
        "SPDXID": identifier,
        "name": package.name,
        "versionInfo": package.version,
        "downloadLocation": _UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": _UNKNOWN,
        "licenseDeclared": package.licence or _UNKNOWN,
        "copyrightText": _UNKNOWN,
        "externalRefs": [reference],
    }
