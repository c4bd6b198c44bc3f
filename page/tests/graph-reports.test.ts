import { describe, expect, it } from "vitest";
import { moveIn } from "../src/find";
import { meetsAny, placeBox } from "../src/graph/geometry";
import { checkReport, describeInterval, groupMeasures, MEASURES, nameMeasure, spreadLabels } from "../src/report";
import { describeCorrection } from "../src/views/corrections";
import { zh } from "../src/zh";

describe("reports", () => {
  const cell = { mean: 0.5, low: 0.25, high: 0.75, p: 0.04, mark: "*", best: true };
  const report = {
    dataset: "d",
    questions: 2,
    recipes: {
      clew: { em: 0.5, n: 2, failed: 0, seconds_per_query: 0.6, seconds_p50: 0.6, calls: 0, money_per_1k_queries: 0 },
      bm25: { em: 0.25, n: 2, failed: 0, seconds_per_query: 0.5, seconds_p50: 0.5, calls: 0, money_per_1k_queries: 0 },
    },
    significance: { reference: { em: "clew" }, cells: { clew: { em: cell }, bm25: { em: cell } } },
  };
  it("show the measures first and what was counted under the fold", () => {
    expect(groupMeasures(report)).toEqual({
      first: ["em", "seconds_per_query"],
      more: ["n", "failed", "seconds_p50", "calls", "money_per_1k_queries"],
    });
  });
  it("say the interval in words, and p against the reference only", () => {
    expect(describeInterval(report, "bm25", "em")).toBe("0.25–0.75; p = 0.04");
    expect(describeInterval(report, "clew", "em")).toBe("0.25–0.75");
    expect(describeInterval({ ...report, significance: undefined }, "clew", "em")).toBe("");
  });
  it("call measures by words, in both languages", () => {
    expect(["em", "recall@5", "step-recall@2", "seconds_p95", "recall@5.n", "a-score.relevance", "own"].map(nameMeasure)).toEqual([
      "Exact match",
      "Recall at 5",
      "Recall after 2 retrievals",
      "Seconds, 95 % of the questions",
      "Recall at 5: questions measured",
      "Answer score: relevance",
      "own",
    ]);
    expect(Object.values(MEASURES).filter((name) => !(name in zh))).toEqual([]);
  });
  it("are taken from a file only if they are whole", () => {
    expect(checkReport(JSON.parse(JSON.stringify(report)))).toMatchObject({ questions: 2, dataset: "d" });
    for (const other of [null, [], {}, { recipes: {} }, { recipes: { a: 1 } }, { ...report, significance: { cells: { a: { em: { mean: "<b>" } } } } }])
      expect(checkReport(other)).toBeNull();
  });
  it("keep the names of a curve apart", () => {
    const same = [0, 1, 2].map((n) => ({ x: 40 + n, y: 100, width: 80 }));
    const heights = spreadLabels(same, 10, 190);
    const gaps = [...heights].sort((a, b) => a - b).flatMap((y, n, all) => (n ? [y - all[n - 1]!] : []));
    expect(gaps.every((gap) => gap >= 15)).toBe(true);
    expect(spreadLabels([{ x: 0, y: 5, width: 9 }, { x: 50, y: 5, width: 9 }], 0, 190)).toEqual([5, 5]);
  });
});

describe("the graph by keyboard", () => {
  it("goes through the proposals and back to the field", () => {
    expect([moveIn(3, -1, "ArrowDown"), moveIn(3, 2, "ArrowDown"), moveIn(3, -1, "ArrowUp"), moveIn(3, 1, "Home"), moveIn(3, 0, "End")]).toEqual([0, -1, 2, 0, 2]);
  });
  it("knows when a name would lie over another", () => {
    const one = { x: 0, y: 0, width: 50, height: 12 };
    expect(meetsAny([one], { ...one, x: 49 })).toBe(true);
    expect(meetsAny([one], { ...one, x: 50 })).toBe(false);
    expect(meetsAny([one], { ...one, y: 12 })).toBe(false);
  });
  it("puts the name of the chosen node where it covers no neighbour", () => {
    const [node, box, room] = [{ x: 200, y: 100, size: 10 }, { width: 80, height: 20 }, { width: 400, height: 200 }];
    const [right, left] = [{ x: 240, y: 104, size: 8 }, { x: 150, y: 100, size: 8 }];
    expect(placeBox(node, box, room, [])).toMatchObject({ x: 214, y: 90 });
    expect(placeBox(node, box, room, [right])).toMatchObject({ x: 106, y: 90 });
    expect(placeBox(node, box, room, [right, left])).toMatchObject({ x: 160, y: 114 });
    expect(placeBox({ ...node, x: 390 }, box, room, [])).toMatchObject({ x: 296, y: 90 });
    expect(placeBox({ ...node, y: 190 }, box, room, [{ ...right, y: 190 }, { ...left, y: 190 }])).toMatchObject({ x: 160, y: 156 });
  });
});

it("corrections are told in one sentence", () => {
  expect(describeCorrection({ what: "merge", names: ["A", "B"], documents: [] })).toBe("“A” and “B” are one entity now.");
  expect(describeCorrection({ what: "split", names: ["A", "B", ""], documents: [] })).toBe("“B”, “a name that is gone” was split off from “A”.");
  expect(describeCorrection({ what: "split", names: ["A"], documents: ["x.md"] })).toBe("“A” in x.md was split off.");
});
