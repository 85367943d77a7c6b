"""Files that are dropped on the page, and errors pasted with Ctrl + V."""

from __future__ import annotations

from base64 import b64encode

from support.browser.hosts import in_host
from support.browser.viewer import Viewer, until
from support.servers import DEMO, TESTS

ERROR = TESTS / "data" / "oom_texts" / "tpu_compile.txt"
MODULE = next((TESTS / "data" / "xla_dumps" / "tpu_v5e_text").glob("*.after_optimizations.txt"))
PROGRAM = next((DEMO / "v5e_train_step").glob("*.hlo.pb.gz"))
DROP = """([name, text]) => {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0));
  const dataTransfer = new DataTransfer();
  dataTransfer.items.add(new File([bytes], name));
  document.body.dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }));
}"""


def test_a_profile_that_is_dropped_on_the_page_opens(viewer: Viewer) -> None:
    viewer.frame.evaluate(DROP, [PROGRAM.name, b64encode(PROGRAM.read_bytes()).decode()])
    state = until(viewer.state, lambda state: state.get("run", "").startswith("pasted/"), "not opened")
    assert state["tab"] == "memory_viewer"
    viewer.wait_until_ready()
    assert "jit_train_step" in viewer.text("headline") or "jit_train_step" in state["module"]
    assert viewer.frame.locator("dialog[open]").count() == 0
    viewer.page.go_back()
    until(viewer.state, lambda state: not state["run"].startswith("pasted/"), "Back does not return")


@in_host("standalone")
def test_the_text_of_a_compiled_module_opens(viewer: Viewer) -> None:
    viewer.frame.evaluate(DROP, [MODULE.name, b64encode(MODULE.read_bytes()).decode()])
    state = until(viewer.state, lambda state: state.get("run", "").startswith("pasted/"), "not opened")
    assert (state["tab"], state["module"]) == ("memory_viewer", "jit_step")
    viewer.wait_until_ready()
    assert viewer.frame.locator("dialog[open]").count() == 0
    assert "XLA's rules" in viewer.text("caveats")


@in_host("tensorboard")
def test_a_file_that_cannot_be_read_is_explained(viewer: Viewer) -> None:
    viewer.frame.evaluate(DROP, ["notes.docx", b64encode(b"x").decode()])
    until(lambda: viewer.get("paste-answer").count(), bool, "no answer")
    assert "unknown file type" in viewer.text("paste-answer")
    viewer.page.keyboard.press("Escape")


@in_host("xprof")
def test_ctrl_v_anywhere_explains_the_pasted_error(viewer: Viewer) -> None:
    assert viewer.get("paste").inner_text() == "Paste error"
    viewer.get("timeline-search").fill("x")
    paste = """text => {
      const clipboardData = new DataTransfer();
      clipboardData.setData('text/plain', text);
      const event = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true });
      (document.activeElement ?? document.body).dispatchEvent(event);
    }"""
    viewer.frame.evaluate(paste, ERROR.read_text())
    assert viewer.frame.locator("dialog[open]").count() == 0, "text pasted into a field is for the field"
    viewer.get("timeline-search").fill("")
    viewer.get("timeline-search").blur()
    viewer.frame.evaluate(paste, ERROR.read_text())
    until(lambda: viewer.get("paste-open").count(), bool, "not explained")
    viewer.get("paste-open").click()
    until(viewer.state, lambda state: state.get("run", "").startswith("pasted/"), "not its run")
    assert viewer.state()["tab"] == "snapshots"
