import { describe, expect, it } from "vitest";
import { correctUrl, pageUrl, readPage, isSamePage } from "./xprof_url";

const BASE = "http://localhost:8791/data/plugin/profile/";
const url = (text: string) => new URL(text, BASE);

describe("readPage", () => {
  it("reads the tool from the query, and else from the path", () => {
    expect(readPage(url("/?run=a/b&tag=memory_viewer&host=h&moduleName=m(1)"))).toEqual({
      tool: "memory_viewer",
      run: "a/b",
      host: "h",
      module: "m(1)",
    });
    expect(readPage(url("memory_viewer?run=r"))).toEqual({
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
  const place = { tool: "memory_viewer", run: "r", host: "h", module: "" };
  it("takes what XProf fills in for the same place", () => {
    expect(isSamePage({ ...place, run: "", host: "" }, place)).toBe(true);
  });
  it("takes another host, run, module or tool for another place", () => {
    expect(isSamePage(place, { ...place, host: "other" })).toBe(false);
    expect(isSamePage(place, { ...place, run: "other" })).toBe(false);
    expect(isSamePage(place, { ...place, module: "m" })).toBe(false);
    expect(isSamePage(place, { ...place, tool: "memory_profile" })).toBe(false);
    expect(isSamePage(place, null)).toBe(false);
  });
});

describe("correctUrl", () => {
  const current = url("memory_viewer?run=r&tag=memory_viewer&host=h#position=3");
  const written = (text: string, isNewEntry: boolean, from = current) => {
    const { pathname, search, hash } = correctUrl(from, text, isNewEntry);
    return `${pathname}${search}${hash}`.replace("/data/plugin/profile/", "");
  };

  it("keeps the fragment that the router forgets", () => {
    expect(written("memory_viewer?run=r&tag=memory_viewer&host=h", false)).toBe(
      "memory_viewer?run=r&tag=memory_viewer&host=h#position=3",
    );
  });

  it("lets a fragment be replaced, and emptied", () => {
    expect(written("memory_viewer?run=r&tag=memory_viewer&host=h#", false)).toBe(
      "memory_viewer?run=r&tag=memory_viewer&host=h",
    );
  });

  it("drops a module that nobody chose", () => {
    const text = "memory_viewer?run=r&tag=memory_viewer&host=h&moduleName=a";
    expect(written(text, false)).toBe("memory_viewer?run=r&tag=memory_viewer&host=h#position=3");
    expect(written(text, true, url("overview_page?run=r&tag=overview_page"))).toBe(
      "memory_viewer?run=r&tag=memory_viewer&host=h",
    );
  });

  it("keeps a module that was chosen or linked to, with a fragment of its own", () => {
    const text = "memory_viewer?run=r&tag=memory_viewer&host=h&moduleName=a";
    expect(written(text, true)).toBe(text);
    expect(written(text, false, url(`${text}#zoom=1,2`))).toBe(`${text}#zoom=1,2`);
  });

  it("leaves other tools alone", () => {
    expect(written("op_profile?run=r&tag=op_profile", true)).toBe("op_profile?run=r&tag=op_profile");
  });
});

describe("pageUrl", () => {
  it("escapes names", () => {
    expect(pageUrl({ tool: "memory_profile", run: "a&b", host: "", module: "m(1)" })).toBe(
      "memory/index.html?tab=memory_profile&run=a%26b&module_name=m%281%29",
    );
  });
});
