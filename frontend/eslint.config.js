import js from "@eslint/js";
import tseslint from "typescript-eslint";
import imports from "./lint/imports.js";

/** Folders in the one direction that imports may go: each imports only from those before it. */
const LAYERS = [
  "src/base",
  "src/payload",
  "src/layout",
  "src/render",
  // What all tabs share: no looks of their own yet, then looks.
  "src/views/browser",
  "src/views/state",
  "src/views/data",
  "src/views/widgets",
  "src/views/tables",
  "src/views/drawing",
  // Parts of a page.
  "src/views/page",
  "src/views/usage",
  "src/views/timeline/drawing",
  "src/views/timeline",
  "src/views/trees",
  "src/views/call_graph",
  "src/views/buffer_table",
  "src/views/breakdown",
  // Tabs.
  "src/views/overview",
  "src/views/recording",
  "src/views/snapshots",
  "src/views/compare",
  "src/views/fit",
  "src/views/fleet",
  "src/views/shell",
  // Entry points.
  "src/hosts",
  "src",
];

export default tseslint.config(
  { ignores: ["node_modules"] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "Profiles are untrusted text." },
      ],
    },
  },
  {
    files: ["src/**"],
    plugins: { imports },
    rules: { "imports/no-cycle": "error", "imports/layers": ["error", LAYERS] },
  },
  {
    files: ["src/**"],
    ignores: ["src/payload/generated/**"],
    rules: { "max-len": ["error", { code: 120, ignoreUrls: true }] },
  },
  { files: ["eslint.config.js", "lint/*.js"], ...tseslint.configs.disableTypeChecked },
);
