import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ESLint } from "eslint";
import { afterEach, describe, expect, it } from "vitest";
import tseslint from "typescript-eslint";
import imports from "./imports.js";

let folder = "";
afterEach(() => rmSync(folder, { recursive: true }));

/** Lint a project of these files; return what is reported, as "file: message". */
async function lint(files: Record<string, string>): Promise<string[]> {
  folder = mkdtempSync(join(tmpdir(), "imports-"));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const eslint = new ESLint({
    cwd: folder,
    overrideConfigFile: true,
    overrideConfig: {
      files: ["**/*.ts"],
      languageOptions: { parser: tseslint.parser },
      plugins: { imports: imports },
      rules: {
        "imports/no-cycle": "error",
        "imports/layers": ["error", ["src/base", "src/views/widgets", "src/views", "src"]],
      },
    },
  });
  const results = await eslint.lintFiles(["**/*.ts"]);
  return results.flatMap(({ filePath, messages }) =>
    messages.map(({ message }) => `${filePath.slice(folder.length + 1)}: ${message}`),
  );
}

describe("the lint rule for circular imports", () => {
  it("reports a cycle in one folder, at each import of it", async () => {
    const reports = await lint({
      "src/base/a.ts": 'import { b } from "./b";\nexport const a = b;\n',
      "src/base/b.ts": 'export { c as b } from "./c";\n',
      "src/base/c.ts": 'import { a } from "./a";\nexport const c: unknown = () => a;\n',
    });
    expect(reports).toEqual([
      "src/base/a.ts: Circular import: src/base/a.ts → src/base/b.ts → src/base/c.ts → src/base/a.ts.",
      "src/base/b.ts: Circular import: src/base/b.ts → src/base/c.ts → src/base/a.ts → src/base/b.ts.",
      "src/base/c.ts: Circular import: src/base/c.ts → src/base/a.ts → src/base/b.ts → src/base/c.ts.",
    ]);
  });

  it.each([
    ["types", 'import type { A } from "./a";\nexport type B = A;\n'],
    ["import types", 'export type B = import("./a").A;\n'],
    ["dynamic imports", 'export const b = () => import("./a");\n'],
    ["workers", 'import url from "./a?worker&url";\nexport const b = url;\n'],
    ["everything that is exported again", 'export * from "./a";\n'],
  ])("sees %s", async (_, text) => {
    const reports = await lint({
      "src/base/a.ts": 'import "./b";\nexport type A = number;\n',
      "src/base/b.ts": text,
    });
    expect(reports).toHaveLength(2);
  });

  it("reports a file that imports itself", async () => {
    expect(await lint({ "src/base/a.ts": 'import "./a";\n' })).toHaveLength(1);
  });

  it("accepts two ways to the same file", async () => {
    const reports = await lint({
      "src/base/a.ts": 'import "./b";\nimport "./c";\n',
      "src/base/b.ts": 'import "./c";\nimport "preact";\n',
      "src/base/c.ts": "export {};\n",
    });
    expect(reports).toEqual([]);
  });
});

describe("the lint rule for layers", () => {
  it("reports an import from a later folder, and one between folders of the same parent", async () => {
    const reports = await lint({
      "src/base/a.ts": 'import "../views/page";\n',
      "src/views/page.ts": "export {};\n",
      "src/views/widgets/button.ts": 'import type {} from "../page";\n',
    });
    expect(reports).toEqual([
      "src/base/a.ts: src/base must not import from src/views, which comes later in LAYERS of eslint.config.js.",
      "src/views/widgets/button.ts: src/views/widgets must not import from src/views, which comes later in " +
        "LAYERS of eslint.config.js.",
    ]);
  });

  it("accepts imports from earlier folders", async () => {
    const reports = await lint({
      "src/main.ts": 'import "./views/page";\n',
      "src/base/a.ts": "export {};\n",
      "src/views/page.ts": 'import "./widgets/button";\nimport "../base/a";\n',
      "src/views/widgets/button.ts": 'import "../../base/a";\n',
    });
    expect(reports).toEqual([]);
  });

  it("reports a file of a folder that has no place yet", async () => {
    expect(await lint({ "other/a.ts": "export {};\n" })).toEqual([
      "other/a.ts: other/a.ts is in no folder of LAYERS in eslint.config.js. Add its folder there.",
    ]);
  });
});
