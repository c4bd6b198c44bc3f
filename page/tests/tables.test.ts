import { describe, expect, it } from "vitest";
import { cutTables } from "../src/reader";
import { formatSource } from "../src/share";
import { findTables, readRow } from "../src/tables";
import { dropInner, nest, sayPlainly } from "../src/views/reasoning";

const HANDBOOK = "# Leave\n\n| Grade: Junior | Notice: 1 month |\n| Grade: 高级 🌍 | Notice: a \\| b |\n\nOslo: more.";
const OFFICES = '## Offices 🌍\noffice: North Pier; city: Oslo.\noffice: East Gate; note: "old; and ""big""".';

/** The characters of a span, counted as the server counts them. */
const at = (text: string, place: { start: number; end: number } | null | undefined): string => (place ? Array.from(text).slice(place.start, place.end).join("") : "");
const find = (text: string, metadata = {}) => findTables(Array.from(text), metadata);

describe("tables in a document", () => {
  it("are lines whose cells carry the names of their columns", () => {
    const [table, ...more] = find(HANDBOOK);
    expect(more).toEqual([]);
    expect(table!.columns).toEqual(["Grade", "Notice"]);
    expect(table!.rows.map((row) => row.cells.map((cell) => cell?.text))).toEqual([["Junior", "1 month"], ["高级 🌍", "a | b"]]);
    expect(at(HANDBOOK, table!.rows[1]!.cells[0])).toBe("高级 🌍");
    expect(at(HANDBOOK, table!.rows[1])).toBe("| Grade: 高级 🌍 | Notice: a \\| b |");
  });
  it("are rows of a file as the server describes them, with their numbers", () => {
    const start = Array.from("## Offices 🌍\n").length;
    const tables = [{ name: "Offices", columns: ["office", "city", "note"], label: "office", start, end: Array.from(OFFICES).length, numbers: [[2, 1], [4, 1]] }];
    const [table] = find(OFFICES, { tables });
    expect(table!.columns).toEqual(["office", "city", "note"]);
    expect(table!.rows.map((row) => row.number)).toEqual([2, 4]);
    const cells = table!.rows[1]!.cells;
    expect(cells.map((cell) => cell?.text ?? null)).toEqual(["East Gate", null, 'old; and "big"']);
    expect(cells.map((cell) => at(OFFICES, cell))).toEqual(["East Gate", "", '"old; and ""big"""']);
  });
  it("are not sentences with a colon", () => {
    expect(find("He said: no. She said: yes.\nThey agreed: never; nobody: knew why.")).toEqual([]);
    const [row] = find("office: North Pier; city: Oslo.", { cells: { office: "North Pier", city: "Oslo" } });
    expect(row!.rows[0]!.cells.map((cell) => cell!.text)).toEqual(["North Pier", "Oslo"]);
  });
  it("stand between the text around them, with the rows that are near", () => {
    const tables = find(HANDBOOK);
    const { start } = tables[0]!.rows[1]!;
    const parts = cutTables(tables, start, HANDBOOK.length);
    expect(parts.map((part) => ("rows" in part ? part.rows.length : HANDBOOK.slice(part.start, part.end).length > 3))).toEqual([1, true]);
    expect(cutTables([], 3, 9)).toEqual([{ start: 3, end: 9 }]);
  });
  it("are named by file and row", () => {
    const cited = { doc: "offices.csv", chunk: "", start: 0, end: 9, quote: "office: North Pier; city: Oslo." };
    expect(formatSource({ ...cited, heading: "row 3" })).toBe("offices.csv, row 3");
    expect(formatSource({ ...cited, doc: "prices.xlsx", heading: "May > row 3" })).toBe("prices.xlsx, May, row 3");
    expect(formatSource({ ...cited, heading: "Rowing > Rows" })).toBe("offices.csv");
    expect(readRow(cited.quote)?.map((cell) => [cell.column, cell.text])).toEqual([["office", "North Pier"], ["city", "Oslo"]]);
    expect(readRow("It stands in Oslo; it is old.")).toBeNull();
  });
});

describe("the reasoning in words", () => {
  it("has no measures of the method", () => {
    expect(sayPlainly("Ossel valley (0.02, marrow.md) by together behind -2.00, direct -1.00, hops 0.50")).toBe("Ossel valley (marrow.md)");
    expect(sayPlainly("0.98 by together 1.00, rival -1.00")).toBe("");
    expect(sayPlainly("Vessen (0.07); Ilse Brandvik (0.03)")).toBe("Vessen; Ilse Brandvik");
    expect(sayPlainly("The fare rose from 1.50 to 2.75 euros.")).toBe("The fare rose from 1.50 to 2.75 euros.");
    expect(sayPlainly("chunks=1 entities=0 facts=8 paths=0")).toBe("1 passage, 8 facts");
    expect(sayPlainly("chunks=0 facts=0")).toBe("nothing");
  });
  it("leaves out the code within a search and steps that only reckoned", () => {
    const step = (name: string, depth: number, output: string, docs?: string[]) => ({ step: name, depth, output, open: false, docs });
    const steps = [step("search", 0, "2 passages", ["a.md"]), step("Walk(hops=3)", 1, "chunks=2"), step("read", 0, "Vessen"), step("best", 1, "Vessen (0.07)"), step("sure", 0, "0.98 by a 1.00, b 2.00")];
    const shown = dropInner(nest(steps));
    expect(shown.map((one) => [one.step.step, one.below.map((inner) => inner.step.step)])).toEqual([["search", []], ["read", ["best"]]]);
  });
});
