import { resolve } from "node:path";
import { defineConfig } from "vitest/config";

/**
 * Two entries, both with names that hosts know: index.html is the page on its own, index.js the ES module that
 * TensorBoard imports and calls `render()` of. Everything else is found relative to index.js, so that any path
 * prefix works.
 */
export default defineConfig({
  base: "./",
  build: {
    outDir: "../tb_memplugin/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    rolldownOptions: {
      input: {
        page: resolve(import.meta.dirname, "index.html"),
        index: resolve(import.meta.dirname, "src/main.ts"),
      },
      preserveEntrySignatures: "strict",
      output: { entryFileNames: "[name].js" },
    },
  },
  worker: { format: "es" },
  server: {
    proxy: { "/src/api": { target: "http://127.0.0.1:6006", rewrite: (path) => path.slice("/src".length) } },
  },
  test: { include: ["src/**/*.test.{ts,tsx}"] },
});
