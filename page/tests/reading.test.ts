// What is read beside an answer: the text of a document, the note of an answer, names of entities.
import { describe, expect, it } from "vitest";
import type { Answer } from "../src/api";
import { chooseEntity, describeShared } from "../src/entities";
import { dropMarks, readMarkup } from "../src/markup";
import { cutPieces, pageOf } from "../src/reader";
import { partNote, toMarkdown } from "../src/share";
import { arrangeRows } from "../src/views/documents";
import { ThreadDrawing, wrap } from "../src/views/thread";

const answer = {
  question: "Where was she born?",
  answer: "She was born in Hallowmere. [1]",
  candidate: "Hallowmere",
  verdict: "answered",
  note: "",
  complete: true,
  citations: [{ doc: "bridge.md", chunk: "a", start: 10, end: 40, quote: "It was designed by Ilse." }],
} as unknown as Answer;

it("breaks lines of wide letters at half as many", () => {
  expect(wrap("She was born in Hallowmere, where her father kept the lighthouse.", 40)).toEqual(["She was born in Hallowmere, where her", "father kept the lighthouse."]);
  const lines = wrap("东门大厦位于上海市浦东新区于二零零六年启用现有员工二百零四人负责人毕业于大学", 40);
  expect(lines.map((line) => line.length)).toEqual([21, 17]);
});

describe("reading", () => {
  it("marks code points, not UTF-16 units", () => {
    const pieces = cutPieces(Array.from("a🧶bcd"), { start: 1, end: 3 }, [{ start: 4, end: 5 }], [0, 3], 0, 5);
    expect(pieces.map((one) => [one.text, one.mark, one.page])).toEqual([
      ["a", "", 1],
      ["🧶b", "here", 0],
      ["c", "", 2],
      ["d", "also", 0],
    ]);
  });
  it("hides the marks of Markdown and keeps the place of every character", () => {
    const chars = Array.from("# A 🧶 title\n**Bold** and [here](http://x.y/z)\n| Year: 1924 | Who: Emil |\n|---|---|\n```\na * b\n```");
    const text = (format: string) => cutPieces(chars, { start: 0, end: 0 }, [], [], 0, chars.length, readMarkup(chars, format)).map((one) => one.text).join("");
    expect(text("html").split("\n").map((line) => line.trim())).toEqual(["A 🧶 title", "Bold and here", "Year: 1924 · Who: Emil", "", "", "a * b", ""]);
    expect(text("text")).toBe(chars.join(""));
    expect(text("pdf")).toBe(chars.slice(2).join(""));
    const marked = chars.join("").indexOf("Bold") - 1; // the ball of yarn is one character, and two code units
    const pieces = cutPieces(chars, { start: marked - 2, end: marked + 6 }, [], [], 0, chars.length, readMarkup(chars, "html"));
    expect(pieces.filter((one) => one.mark).map((one) => one.text)).toEqual(["Bold"]);
    expect(pieces.filter((one) => one.heading).map((one) => one.text)).toEqual(["A 🧶 title"]);
    expect(dropMarks("## Staff\n| Year: 1924 |")).toBe("Staff\n Year: 1924");
    expect(dropMarks("2 * 3 * 4 and a_b_c")).toBe("2 * 3 * 4 and a_b_c");
  });
  it("knows the page of a place", () => expect([0, 9, 10, 30].map((n) => pageOf([0, 10, 20], n))).toEqual([1, 1, 2, 3]));
});

describe("an answer that is not complete", () => {
  it("says the reason that the server gives", () => {
    const note = "fell back: x; given without the model: the budget of 3 calls is spent";
    expect(partNote({ ...answer, complete: false, note })).toEqual({ ended: "the budget of 3 calls is spent", rest: "fell back: x" });
    expect(partNote({ ...answer, complete: false, note: "given without the model: it broke" })).toEqual({ ended: "it broke", rest: "" });
    expect(partNote({ ...answer, note: "fell back: x" })).toEqual({ ended: "", rest: "fell back: x" });
  });
});

describe("the name of an entity", () => {
  it("is the one that is written, else one that has the text in it", () => {
    const entity = (name: string, ...aliases: string[]) => ({ key: 1, id: "", name, type: "", description: "", aliases, chunks: 1 });
    const some = [entity("Ilse Brandvik Museum"), entity("Ilse Brandvik", "Ilse Maria")];
    expect(["ilse brandvik", "ILSE MARIA", "museum", " Oda "].map((text) => chooseEntity(some, text)?.name)).toEqual(["Ilse Brandvik", "Ilse Brandvik", "Ilse Brandvik Museum", undefined]);
  });
});

describe("marks of Markdown", () => {
  it("are not drawn with a fact", () => {
    expect(describeShared({ key: 1, text: "# 盐门桥", relation: "", states: true })).toBe("盐门桥");
    expect(describeShared({ key: 1, text: "**Ilse** built it", relation: "", states: false })).toBe("stated in the same passage: Ilse built it");
    const nodes = ["A", "B"].map((name) => ({ name, known: true }));
    const thread = { nodes, edges: [{ text: "## Bridges\nBuilt by **Ilse**.", cited: answer.citations[0]!, mark: 1 }] };
    const drawn = JSON.stringify(ThreadDrawing({ thread, live: false, onOpen: () => {} }));
    expect(drawn).toContain("Bridges Built by Ilse.");
    expect(drawn).not.toMatch(/##|\*\*/);
  });
});

describe("documents", () => {
  const row = (name: string, state: string) => ({ id: name, name, state, labels: [] });
  it("lists what failed and what waits first, wherever the names stand", () => {
    const waiting = [row("y.md", "uploaded"), row("z.md", "failed")];
    const rows = [row("a.md", "added"), row("y.md", "uploaded")];
    expect(arrangeRows(waiting, rows).map((one) => one.name)).toEqual(["z.md", "y.md", "a.md"]);
  });
});

describe("copying", () => {
  it("copies the short answer above the text, and names the page of a footnote", () => {
    const [, text] = toMarkdown(answer).split("\n\n");
    expect(text).toBe("Hallowmere");
    expect(toMarkdown({ ...answer, confidence: 0.2 })).toContain("\nNot sure, perhaps: Hallowmere\n");
    const repeated = toMarkdown({ ...answer, answer: "Hallowmere [1]\nShe was born there. [1]" });
    expect(repeated).toContain("\nHallowmere [^1]\n\nShe was born there. [^1]\n");
    const citations = [{ ...answer.citations[0]!, page: 7, quote: "# Bridges\nIt was designed by **Ilse**." }];
    expect(toMarkdown({ ...answer, citations })).toContain("[^1]: bridge.md, Page 7, 10–40: “Bridges It was designed by Ilse.”");
  });
});
