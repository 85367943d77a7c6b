import { describe, expect, it } from "vitest";
import {
  correctUrl,
  hasPlace,
  isSamePage,
  pageUrl,
  readPage,
  withFragment,
  withParameters,
} from "./xprof_url";

const BASE = "http://localhost:8791/data/plugin/profile/";
const url = (text: string) => new URL(text, BASE);
const shown = ({ pathname, search, hash }: URL) =>
  `${pathname}${search}${hash}`.replace("/data/plugin/profile/", "");

describe("readPage", () => {
  it("reads the tool from the path, and else from the query", () => {
    expect(readPage(url("/?run=a/b&tag=memory_viewer&host=h&moduleName=m(1)"))).toEqual({
      tool: "memory_viewer",
      run: "a/b",
      host: "h",
      module: "m(1)",
    });
    expect(readPage(url("memory_viewer?run=r&tag=overview_page"))).toEqual({
      tool: "memory_viewer",
      run: "r",
      host: "",
      module: "",
    });
  });

  it("knows Memory Profile too", () => {
    expect(readPage(url("memory_profile?run=r&tag=memory_profile"))?.tool).toBe("memory_profile");
  });

  it("is null for another tool", () => {
    expect(readPage(url("trace_viewer?run=r&tag=trace_viewer"))).toBeNull();
    expect(readPage(url("/"))).toBeNull();
  });
});

describe("isSamePage", () => {
  it("compares each parameter", () => {
    const place = { tool: "memory_viewer", run: "r", host: "h", module: "" };
    expect(isSamePage(place, { ...place })).toBe(true);
    for (const key of ["tool", "run", "host", "module"])
      expect(isSamePage(place, { ...place, [key]: "x" })).toBe(false);
    expect(isSamePage(place, null)).toBe(false);
    expect(isSamePage(null, null)).toBe(true);
  });
});

const OURS = "#tab=memory_viewer&run=r&host=h&module=m(1)&position=3";

describe("correctUrl", () => {
  const current = url(`memory_viewer?run=r&tag=memory_viewer&host=h&moduleName=m(1)${OURS}`);
  const written = (text: string, isNewEntry: boolean, from = current) =>
    decodeURIComponent(shown(correctUrl(from, url(text), isNewEntry, ["r", "s"])));

  it("keeps our place where XProf repeats another", () => {
    const ours = "memory_viewer?run=r&tag=memory_viewer&host=h&moduleName=m(1)";
    for (const text of [ours, `${ours}#stale=1`, "memory_viewer?run=s&tag=memory_viewer&host=x&moduleName=a"])
      expect(written(text, false)).toBe(`${ours}${OURS}`);
    expect(written("memory_viewer?run=r&tag=overview_page", false)).toContain("tag=memory_viewer");
  });

  it("follows a choice, with a new fragment", () => {
    const module = "memory_viewer?run=r&tag=memory_viewer&host=h&moduleName=a";
    expect(written(module, true)).toBe(`${module}#tab=memory_viewer&run=r&host=h&module=a`);
    const tool = "memory_profile?run=r&tag=memory_profile&host=h";
    expect(written(tool, true)).toBe(`${tool}#tab=memory_profile&run=r&host=h`);
  });

  it("drops a module that nobody chose", () => {
    const text = "memory_viewer?run=s&tag=memory_viewer&host=h&moduleName=a";
    expect(written(text, true)).toBe(
      "memory_viewer?run=s&tag=memory_viewer&host=h#tab=memory_viewer&run=s&host=h",
    );
    for (const from of ["overview_page?run=s&tag=overview_page", "memory_viewer?run=s&tag=memory_viewer"])
      expect(written(text, false, url(from))).toBe("memory_viewer?run=s&tag=memory_viewer&host=h");
  });

  it("leaves other tools alone", () => {
    expect(written("op_profile?run=r&tag=op_profile", true)).toBe("op_profile?run=r&tag=op_profile");
  });
});

describe("withFragment", () => {
  it("escapes names, and keeps what is not ours", () => {
    const text = "memory_viewer?run=a%26b%23/c&moduleName=m%25(1)#profile";
    expect(withFragment(url(text)).hash).toBe("#profile&tab=memory_viewer&run=a%26b%23/c&module=m%25(1)");
  });

  it("is read back", () => {
    const names = "run=a%26b%23%2Fc%3D&host=h%25+h&moduleName=%5B%5D%E2%82%AC";
    const next = withFragment(url(`memory_viewer?${names}`));
    const emptied = withParameters(url(`memory_viewer${next.hash}`), null);
    expect(readPage(emptied)).toEqual(readPage(url(`memory_viewer?${names}`)));
  });
});

describe("withParameters", () => {
  const led = (text: string, runs: string[] | null = null) =>
    decodeURIComponent(shown(withParameters(url(text), runs)).replace(/#.*/, ""));

  it("names our tab, run, host and module", () => {
    expect(led(`memory_profile?tag=memory_profile&run=x${OURS}`)).toBe(
      "memory_viewer?tag=memory_viewer&run=r&host=h&moduleName=m(1)",
    );
    expect(led("/?tag=memory_viewer&moduleName=m#tab=memory_profile&run=r")).toBe(
      "/?tag=memory_profile&run=r",
    );
  });

  it("names only the run of a tab that is no tool of XProf", () => {
    const text = "memory_viewer?tag=memory_viewer&run=r&host=h&moduleName=m";
    expect(led(`${text}#run=r&host=other`)).toBe(text);
    expect(led(`${text}#tab=compare&run=s`)).toBe("memory_viewer?tag=memory_viewer&run=s");
  });

  it("names no run that XProf does not have", () => {
    const text = "memory_viewer?tag=memory_viewer&run=r";
    expect(led(`${text}#tab=memory_viewer&run=s`, ["r"])).toBe(text);
    expect(hasPlace(url(text))).toBe(false);
  });
});

describe("pageUrl", () => {
  it("escapes names", () => {
    expect(pageUrl({ tool: "memory_profile", run: "a&b", host: "", module: "m(1)" })).toBe(
      "memory/index.html?tab=memory_profile&run=a%26b&module_name=m%281%29",
    );
  });
});
