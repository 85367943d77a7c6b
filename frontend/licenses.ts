import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

interface LockedPackage {
  version?: string;
  license?: string;
  dev?: boolean;
}

const FILE = "licenses.txt";
const LICENSE = /^(licen[cs]e|copying|notice)/i;

/**
 * Write the licenses of all packages that the page may contain, workers included: they are installed for production.
 * The page's document links to the file.
 */
export function licenses(root: string): Plugin {
  return {
    name: "licenses",
    apply: "build",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: FILE, source: licensesText(root) });
    },
    transformIndexHtml: () => [
      { tag: "link", attrs: { rel: "license", href: `./${FILE}` }, injectTo: "head" },
    ],
  };
}

/** Return the text: a section per package, sorted by name. Throws for a package without a license file. */
export function licensesText(root: string): string {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
    packages: Record<string, LockedPackage>;
  };
  const sections = Object.entries(lock.packages)
    .filter(([path, found]) => path !== "" && found.dev !== true)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, found]) => {
      const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);
      const folder = join(root, path);
      const files = readdirSync(folder).filter((file) => LICENSE.test(file));
      if (files.length === 0) throw new Error(`${name} has no license file: add its license to licenses.ts`);
      const texts = files.sort().map((file) => readFileSync(join(folder, file), "utf8").trim());
      return `${name} ${found.version ?? ""} (${found.license ?? "see below"})\n\n${texts.join("\n\n")}\n`;
    });
  const title = "The page of tb-memplugin contains these packages, under the licenses below.\n";
  return [title, ...sections].join(`\n${"-".repeat(80)}\n\n`);
}
