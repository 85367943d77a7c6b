import { describe, expect, it } from "vitest";
import { editorLink, EDITORS, isEditorTemplate } from "./source_code";

const [, { template: VSCODE }, { template: PYCHARM }] = EDITORS;

describe("a link to an editor", () => {
  it("leads to the line of a file", () => {
    expect(editorLink(VSCODE, "/home/u/my proj/train.py", 12)).toBe(
      "vscode://file/home/u/my%20proj/train.py:12",
    );
    expect(editorLink(VSCODE, "C:\\work\\train.py", 12)).toBe("vscode://file/C:/work/train.py:12");
    expect(editorLink(PYCHARM, "/home/u/train.py", 12)).toBe("pycharm://open?file=/home/u/train.py&line=12");
  });

  it("is off by default, and needs a complete path", () => {
    expect(editorLink(EDITORS[0].template, "/home/u/train.py", 1)).toBeNull();
    for (const path of ["train.py", "<string>", "", "//evil.example/share/train.py", "\\\\evil\\share\\a.py"])
      expect(editorLink(VSCODE, path, 1), path).toBeNull();
    for (const path of ["/a/../../etc/x.py", "C://evil/share"])
      expect(editorLink(VSCODE, path, 1)).toBeNull();
  });

  it("keeps the characters of a path within the path", () => {
    expect(editorLink(PYCHARM, "/a&line=9#x?y%2e/b.py", 1)).toBe(
      "pycharm://open?file=/a%26line%3D9%23x%3Fy%252e/b.py&line=1",
    );
    expect(editorLink(VSCODE, "/a\ud800/{line}.py", 3)).toBe("vscode://file/a%EF%BF%BD/%7Bline%7D.py:3");
  });

  it("has one of a few schemes", () => {
    for (const { template } of EDITORS) expect(template === "" || isEditorTemplate(template)).toBe(true);
    const wrong = ["javascript:alert(1)//{path}", "http://evil/{path}", "file:///{path}", "vscode:{path}"];
    for (const template of [...wrong, " vscode://file/{path}", "VSCODE://file/{path}", "vscode://{path}"])
      expect(isEditorTemplate(template), template).toBe(false);
  });
});
