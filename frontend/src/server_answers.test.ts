import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { holesAt, unplacedBytes } from "./layout/address_map";
import type { AllRuntimeToProgram, Details, Holes, RuntimeToProgram } from "./payload/generated/answers";
import type { UsageQuery } from "./payload/generated/client";
import { readRecordingData, readUsage, type Usage } from "./payload/recording/recording";
import { bufferDetails, readDetailTables, runtimeToProgramAt, usageWindow } from "./payload/report";
import { decodeTables, type Tables } from "./payload/tables/tables";

/**
 * What a report stores about a recording, and the server's answers to the same questions. Tables are base64.
 * tests/questions/export/test_offline_answers.py writes this file and runs these tests.
 */
interface Compared {
  id: string;
  rows: string;
  details: string;
  usage: string;
  joins: AllRuntimeToProgram | null;
  answers: {
    details: Details[];
    usage: { query: UsageQuery; answer: string }[];
    joins: RuntimeToProgram[];
    holes: Holes[];
  };
}

const FILE = process.env["SERVER_ANSWERS"];
const compared = FILE === undefined ? [] : (JSON.parse(readFileSync(FILE, "utf8")) as Compared[]);

// Vitest rejects a file without tests.
if (FILE === undefined) it.skip("needs the file that the Python tests write", () => undefined);

function tables(base64: string): Tables {
  const bytes = Buffer.from(base64, "base64");
  return decodeTables(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
}

function usageOf(base64: string): Usage {
  return readUsage(tables(base64).table("usage"));
}

describe.skipIf(FILE === undefined).each(compared)("offline answers about $id", (stored) => {
  const all = readRecordingData(tables(stored.rows));

  it("have the server's details of every row", () => {
    const details = readDetailTables(tables(stored.details));
    for (const answer of stored.answers.details)
      expect(bufferDetails(all, details, answer.row)).toEqual({ planned: null, ...answer });
  });

  it("have the server's usage in every window", () => {
    const usage = usageOf(stored.usage);
    for (const { query, answer } of stored.answers.usage)
      expect(usageWindow(usage, query)).toEqual(usageOf(answer));
  });

  it("have the server's programs at every position", () => {
    for (const answer of stored.answers.joins)
      expect(stored.joins && runtimeToProgramAt(stored.joins, answer.at)).toEqual(answer);
  });

  it("have the server's holes at every position", () => {
    for (const answer of stored.answers.holes) {
      const sizes = holesAt(all.rows, all.regions, answer.at).map(({ from, to }) => to - from);
      expect(sizes.slice(0, answer.holes.length)).toEqual(answer.holes.map(({ size }) => size));
      expect(sizes.length).toBe(answer.holes_total);
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(answer.holes_bytes);
      expect(unplacedBytes(all.rows, answer.at)).toBe(answer.unplaced_bytes);
    }
  });
});
