"""The software bill of materials of a wheel, as CycloneDX JSON: what it contains, and what pip installs with it.

    python -m tools.sbom dist/tb_memplugin-0.1.0-cp311-abi3-linux_x86_64.whl frontend/package-lock.json

The file is written beside the wheel. The same wheel gives the same bytes: there is no time in it, and its serial number
is derived from the wheel.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import sys
import uuid
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*(?P<versions>[^;]*?)\s*(?:;\s*(?P<marker>.*))?"
)
LIBRARY = "library"


def bill_of_materials(wheel: Path, lock: Path) -> dict[str, Any]:
    """Return the document of a wheel, and of the lock file of the page in it."""
    metadata = _metadata(wheel)
    name, version = metadata["Name"], metadata["Version"]
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    root = f"pkg:pypi/{_normalize(name)}@{version}"
    parts = [*_packages_of_page(lock), *_requirements(metadata)]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{root}#{digest}')}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": name,
                "version": version,
                "purl": root,
                "licenses": [{"license": {"id": metadata["License-Expression"]}}],
                "hashes": [{"alg": "SHA-256", "content": digest}],
                "properties": [{"name": "wheel", "value": wheel.name}],
            }
        },
        "components": parts,
        "dependencies": [{"ref": root, "dependsOn": [part["bom-ref"] for part in parts]}],
    }


def _metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        path = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(path).decode())


def _packages_of_page(lock: Path) -> list[dict[str, Any]]:
    """Return the packages that the page may contain: those that are installed for production."""
    packages: dict[str, dict[str, Any]] = json.loads(lock.read_text())["packages"]
    found = []
    for path, package in sorted(packages.items()):
        if not path or package.get("dev"):
            continue
        name, version = path.rpartition("node_modules/")[2], package["version"]
        purl = f"pkg:npm/{name.replace('@', '%40', 1)}@{version}"
        algorithm, _, digest = package["integrity"].partition("-")
        found.append(
            {
                "type": LIBRARY,
                "bom-ref": purl,
                "name": name,
                "version": version,
                "scope": "required",
                "purl": purl,
                "licenses": [{"license": {"id": package["license"]}}],
                "hashes": [
                    {"alg": algorithm.upper().replace("SHA", "SHA-"), "content": base64.b64decode(digest).hex()}
                ],
                "properties": [{"name": "part", "value": "bundled with the page"}],
            }
        )
    return found


def _requirements(metadata: Message) -> list[dict[str, Any]]:
    """Return the packages that pip installs with the wheel; their versions are chosen then."""
    found = []
    for text in sorted(set(metadata.get_all("Requires-Dist") or [])):
        requirement = REQUIREMENT.fullmatch(text)
        if requirement is None:
            raise SystemExit(f"Not a requirement: {text}")
        marker = requirement["marker"] or ""
        found.append(
            {
                "type": LIBRARY,
                "bom-ref": f"requirement: {text}",
                "name": requirement["name"],
                "scope": "optional" if marker else "required",
                "purl": f"pkg:pypi/{_normalize(requirement['name'])}",
                "properties": [
                    {"name": "part", "value": "installed by pip"},
                    {"name": "versions", "value": requirement["versions"] or "any"},
                    *([{"name": "marker", "value": marker}] if marker else []),
                ],
            }
        )
    return found


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(wheel: Path, lock: Path) -> None:
    document = bill_of_materials(wheel, lock)
    version = document["metadata"]["component"]["version"]
    path = wheel.parent / f"tb_memplugin-{version}.cdx.json"
    path.write_text(json.dumps(document, indent=2) + "\n")
    print(f"{path.name}: {len(document['components'])} components")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
