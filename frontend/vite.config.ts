import { resolve } from "node:path";
import { defineConfig } from "vitest/config";
import { licenses } from "./licenses";

/**
 * Three entries, all with names that hosts know: index.html is the page on its own, index.js the ES module that
 * TensorBoard imports and calls `render()` of, xprof.js the classic script in XProf's page. Everything else is found
 * relative to index.js, so that any path prefix works.
 */
export default defineConfig({
  base: "./",
  plugins: [licenses(import.meta.dirname)],
  build: {
    outDir: "../tb_memplugin/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    assetsInlineLimit: 0,
    rolldownOptions: {
      input: {
        page: resolve(import.meta.dirname, "index.html"),
        index: resolve(import.meta.dirname, "src/main.tsx"),
        xprof: resolve(import.meta.dirname, "src/hosts/xprof.ts"),
      },
      // Keeps the code in index.js itself: it finds the backend beside its own URL.
      preserveEntrySignatures: "allow-extension",
      output: {
        entryFileNames: "[name].js",
        // A classic script shares its top level with XProf's own.
        banner: (chunk) => (chunk.name === "xprof" ? "(() => {" : ""),
        footer: (chunk) => (chunk.name === "xprof" ? "})();" : ""),
      },
    },
  },
  worker: { format: "iife" },
  server: {
    proxy: { "/src/api": { target: "http://127.0.0.1:6007", rewrite: (path) => path.slice("/src".length) } },
  },
  // A busy machine takes many times as long.
  test: {
    include: ["src/**/*.test.{ts,tsx}", "lint/**/*.test.ts"],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
});
