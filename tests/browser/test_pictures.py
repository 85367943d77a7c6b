"""Charts saved as SVG and PNG: well-formed, in light colors, with the chart's labels as text."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.browser.hosts import Host, open_standalone
from support.browser.pages import load
from support.browser.viewer import Viewer
from support.pprof_files import Frame, Sample, write
from support.servers import DEMO, TESTS

TEXTS = TESTS / "data" / "oom_texts"
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '"><script>document.title="owned"</script>&\x01'
PROGRAM = {"tab": "memory_viewer", "run": "train_step/cpu", "module": "jit_train_step(0)", "by": "model"}
MARKUP = {"tab": "snapshots", "run": "markup"}
LEAK = {"run": "device_profile_leak"}

# State of a page with the chart, and words in its picture, by the name in the button's test id.
CHARTS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "flame-graph": (PROGRAM | {"chart": "flame"}, ("everything", "756 MiB", "forward", "layer_0")),
    "treemap": (PROGRAM | {"chart": "treemap"}, ("everything", "756 MiB", "log_softmax")),
    "call-graph": (LEAK | {"tab": "snapshots", "host": "memory9"}, ("anotherfunc", "1.72 MiB (31.03%)")),
    "growth-chart": (
        LEAK | {"tab": "snapshots", "host": "memory9"},
        ("memory1", "memory9", "2 MiB", "anotherfunc", "leak"),
    ),
    "usage-chart": (PROGRAM, ("768 MiB", "position 215", "live, unpadded", "reserved")),
    "waterfall": (LEAK | {"tab": "compare"}, ("A", "live arrays", "+1.68 MiB", "5.53 MiB")),
    "address-map": ({"tab": "snapshots", "run": "fragmented"}, ("in use", "largest hole 3.97 MiB")),
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    folder = tmp_path_factory.mktemp("pictures")
    for run in ("device_profile_leak", "train_step"):
        shutil.copytree(DEMO / run, folder / "logs" / run)
    (folder / "logs" / "fragmented").mkdir()
    shutil.copy(TEXTS / "bfc_tensorflow.txt", folder / "logs" / "fragmented" / "error.oom.txt")
    (folder / "logs" / "markup").mkdir()
    write(folder / "logs" / "markup", [Sample([Frame(HOSTILE, "train.py", 3)], 1 << 20)])
    with open_standalone(folder / "logs", folder) as host:
        yield host


def save_chart(host: Host, tab: Viewer, chart: str, state: dict[str, str], folder: Path) -> tuple[Path, Path]:
    """Save the chart as SVG and as PNG from a dark page."""
    viewer = load(tab, host.address(state), color_scheme="dark")
    viewer.get(chart).wait_for()  # opens its tab
    found = []
    for ending in ("svg", "png"):
        download = viewer.save_picture(chart, ending)
        name = download.suggested_filename
        assert name.startswith(state["run"].replace("/", "_")) and name.endswith(f".{ending}")
        path = folder / f"{chart}.{ending}"
        download.save_as(path)
        found.append(path)
    assert tab.page.title() != "owned"
    return found[0], found[1]


def texts(svg: Path) -> list[str]:
    return [text.text or "" for text in ElementTree.parse(svg).getroot().iter(f"{SVG}text")]


@pytest.mark.parametrize("chart", CHARTS)
def test_a_chart_is_saved(chart: str, host: Host, tab: Viewer, tmp_path: Path) -> None:
    state, words = CHARTS[chart]
    svg, png = save_chart(host, tab, chart, state, tmp_path)
    root = ElementTree.parse(svg).getroot()
    ground = root.find(f"{SVG}rect")
    assert ground is not None and ground.get("fill") == "#ffffff"
    all_text = "\n".join(texts(svg))
    # The title: what the chart is, and of which run.
    assert texts(svg) and chart.replace("-", " ") in all_text.lower()
    run = state.get("run", "")
    assert run in all_text and svg.name != png.name
    for word in words:
        assert word in all_text
    assert "var(" not in svg.read_text() and "color-mix" not in svg.read_text() and "color(" not in svg.read_text()
    content = png.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    width = int.from_bytes(content[16:20], "big")
    assert width == 2 * int(root.attrib["width"])


def test_a_picture_names_program_memory_and_position_and_explains_its_colors(
    host: Host, tab: Viewer, tmp_path: Path
) -> None:
    svg, _ = save_chart(host, tab, "flame-graph", PROGRAM | {"chart": "flame", "position": "100"}, tmp_path)
    found = texts(svg)
    assert "train_step/cpu · localhost · jit_train_step(0) · HBM" in found
    assert "at position 100" in found
    assert {"parameter", "activation"} <= set(found)
    colors = {text.get("fill") for text in ElementTree.parse(svg).getroot().iter(f"{SVG}rect")}
    assert "#0072b2" in colors  # of parameters, in the light theme


@pytest.mark.parametrize("chart", ["flame-graph", "call-graph"])
def test_names_are_text_in_a_picture(chart: str, host: Host, tab: Viewer, tmp_path: Path) -> None:
    svg, _ = save_chart(host, tab, chart, MARKUP | {"by": "stack"}, tmp_path)
    root = ElementTree.parse(svg).getroot()
    assert any("script" in text for text in texts(svg))
    assert {element.tag for element in root.iter() if "script" in str(element.tag)} == set()
