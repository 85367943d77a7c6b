import js from "@eslint/js";
import tseslint from "typescript-eslint";

/** Folders of src, in the one direction that imports may go: each may import from those before it. */
const LAYERS = ["base", "payload", "layout", "render", "views"];

const layerRules = LAYERS.map((layer, depth) => ({
  files: [`src/${layer}/**`],
  rules: {
    "no-restricted-imports": [
      "error",
      {
        patterns: LAYERS.slice(depth + 1).map((later) => ({
          group: [`**/${later}/**`],
          message: `${layer} comes before ${later}.`,
        })),
      },
    ],
  },
}));

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
  ...layerRules,
  { files: ["eslint.config.js"], ...tseslint.configs.disableTypeChecked },
);
