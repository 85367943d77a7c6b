/** ESLint rules for imports between our own files: folders in layers, and no circular imports. */
import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, relative, resolve, sep } from "node:path";
import ts from "typescript";

const EXTENSIONS = [".ts", ".tsx"];

/** Return the path of the file that an import names, or null for a package or a file that is not TypeScript. */
function resolveImport(from, specifier) {
  if (!specifier.startsWith(".")) return null;
  const path = resolve(dirname(from), specifier.replace(/\?.*/, ""));
  return EXTENSIONS.map((extension) => path + extension).find((file) => existsSync(file)) ?? null;
}

const cache = new Map();

/** List the files that a file imports, types included. Read again only when the file has changed: editors keep us. */
function importsOf(file) {
  const { mtimeMs } = statSync(file);
  const known = cache.get(file);
  if (known?.mtimeMs === mtimeMs) return known.imports;
  const { importedFiles } = ts.preProcessFile(readFileSync(file, "utf8"), true, true);
  const imports = importedFiles.map(({ fileName }) => resolveImport(file, fileName)).filter(Boolean);
  cache.set(file, { mtimeMs, imports });
  return imports;
}

/** Return the shortest chain of imports from one file to another, both included, or null. */
function findChain(from, to) {
  const before = new Map([[from, null]]);
  for (const file of before.keys()) {
    if (file === to) {
      const chain = [];
      for (let step = file; step !== null; step = before.get(step)) chain.unshift(step);
      return chain;
    }
    for (const next of importsOf(file)) if (!before.has(next)) before.set(next, file);
  }
  return null;
}

/** Return a visitor that calls `check` for every import of a file of ours, in whichever form it is written. */
function visitImports(context, check) {
  const visit = (node, source) => {
    if (typeof source?.value !== "string") return;
    const target = resolveImport(context.filename, source.value);
    if (target !== null) check(node, target);
  };
  return {
    ImportDeclaration: (node) => visit(node, node.source),
    ExportNamedDeclaration: (node) => visit(node, node.source),
    ExportAllDeclaration: (node) => visit(node, node.source),
    ImportExpression: (node) => visit(node, node.source),
    TSImportType: (node) => visit(node, node.source),
  };
}

const noCycle = {
  meta: { type: "problem", schema: [], messages: { cycle: "Circular import: {{chain}}." } },
  create: (context) =>
    visitImports(context, (node, target) => {
      const chain = findChain(target, context.filename);
      if (chain === null) return;
      const names = [context.filename, ...chain].map((file) => relative(context.cwd, file));
      context.report({ node, messageId: "cycle", data: { chain: names.join(" → ") } });
    }),
};

const layers = {
  meta: {
    type: "problem",
    schema: [{ type: "array", items: { type: "string" } }],
    messages: {
      later: "{{from}} must not import from {{to}}, which comes later in LAYERS of eslint.config.js.",
      unknown: "{{file}} is in no folder of LAYERS in eslint.config.js. Add its folder there.",
    },
  },
  create: (context) => {
    const [folders] = context.options;
    const nameOf = (file) => relative(context.cwd, file).replaceAll(sep, "/");
    // The longest folder wins: a folder inside another one may be a layer of its own.
    const layerOf = (file) =>
      folders
        .filter((folder) => nameOf(file).startsWith(`${folder}/`))
        .sort((a, b) => b.length - a.length)
        .at(0);
    const from = layerOf(context.filename);
    return {
      Program: (node) => {
        if (from === undefined)
          context.report({ node, messageId: "unknown", data: { file: nameOf(context.filename) } });
      },
      ...visitImports(context, (node, target) => {
        const to = layerOf(target);
        if (from !== undefined && to !== undefined && folders.indexOf(to) > folders.indexOf(from))
          context.report({ node, messageId: "later", data: { from, to } });
      }),
    };
  },
};

export default { rules: { "no-cycle": noCycle, layers } };
