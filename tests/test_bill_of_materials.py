"""Licenses and the bill of materials of what is distributed: the packages that the page contains."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from pathlib import Path

import pytest
from support.servers import REPOSITORY

from tb_memplugin.hosts import report, static
from tools.sbom import bill_of_materials, main

LOCK = REPOSITORY / "frontend/package-lock.json"
METADATA = """Metadata-Version: 2.4
Name: tb-memplugin
Version: 9.8.7
License-Expression: Apache-2.0
Requires-Dist: numpy>=1.26
Requires-Dist: psutil>=5.9; sys_platform != "linux"
Requires-Dist: fsspec
Requires-Dist: tb-memplugin[tensorboard,xprof]; extra == "dev"

Text
"""


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "tb_memplugin-9.8.7-cp311-abi3-linux_x86_64.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("tb_memplugin-9.8.7.dist-info/METADATA"), METADATA)
    return path


def bundled() -> set[str]:
    """Return the packages that the page's dependencies need, as package.json and the lock file name them."""
    packages = json.loads(LOCK.read_text())["packages"]
    found, waiting = set[str](), list(packages[""]["dependencies"])
    while waiting:
        name = waiting.pop()
        found.add(name)
        waiting += set(packages[f"node_modules/{name}"].get("dependencies", {})) - found
    return found


def test_the_bill_lists_what_the_wheel_contains_and_needs(wheel: Path) -> None:
    document = bill_of_materials(wheel, LOCK)
    components = {part["bom-ref"]: part for part in document["components"]}
    assert {part["name"] for part in components.values() if part["purl"].startswith("pkg:npm/")} == bundled()
    assert {"preact", "uplot", "@dagrejs/dagre"} <= bundled()
    assert {"numpy", "psutil", "fsspec"} <= {part["name"] for part in components.values()}
    assert components['requirement: psutil>=5.9; sys_platform != "linux"']["scope"] == "optional"
    [dagre] = (part for part in components.values() if part["name"] == "@dagrejs/dagre")
    assert re.fullmatch(r"pkg:npm/%40dagrejs/dagre@[\d.]+", dagre["purl"])
    [sha512] = dagre["hashes"]
    assert sha512["alg"] == "SHA-512" and len(sha512["content"]) == 128
    assert dagre["licenses"] == [{"license": {"id": "MIT"}}]
    root = document["metadata"]["component"]
    assert (root["name"], root["version"]) == ("tb-memplugin", "9.8.7")
    assert root["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(wheel.read_bytes()).hexdigest()}]
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert document["dependencies"] == [{"ref": root["bom-ref"], "dependsOn": list(components)}]


def test_the_same_wheel_has_the_same_bill(wheel: Path) -> None:
    path = wheel.parent / "tb_memplugin-9.8.7.cdx.json"
    main(wheel, LOCK)
    first = path.read_bytes()
    main(wheel, LOCK)
    assert path.read_bytes() == first


@pytest.mark.skipif(not (static.FOLDER / "index.html").exists(), reason="needs the built page")
def test_the_licenses_of_all_packages_are_part_of_the_page_and_of_reports() -> None:
    text = (static.FOLDER / "licenses.txt").read_text()
    for name in bundled():
        [section] = (part for part in text.split("-" * 80) if part.strip().startswith(f"{name} "))
        assert "Copyright" in section and "Permission is hereby granted" in section
    assert 'rel="license" href="./licenses.txt"' in (static.FOLDER / "index.html").read_text()
    assert "licenses.txt" in static.names()
    assert all(f"{name} " in report.licenses().decode() for name in bundled())


def test_make_dist_writes_the_bill() -> None:
    recipe = (REPOSITORY / "Makefile").read_text().partition("\ndist:")[2].partition("\n\n")[0]
    assert "-m tools.sbom dist/*.whl frontend/package-lock.json" in recipe
