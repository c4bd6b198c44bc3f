// Reports of evaluations: what they hold, which measures come first, and where the names of a curve go.

import { t } from "./i18n";

export interface Cell {
  mean: number;
  low: number;
  high: number;
  p: number;
  mark: string;
  best: boolean;
}
export interface Report {
  dataset: string;
  questions: number;
  recipes: Record<string, Record<string, unknown>>;
  significance?: { reference: string | Record<string, string>; cells: Record<string, Record<string, Cell>> };
}

const isObject = (one: unknown): one is Record<string, unknown> => typeof one === "object" && one !== null && !Array.isArray(one);
const isCell = (one: unknown): boolean => isObject(one) && ["mean", "low", "high", "p"].every((name) => typeof one[name] === "number");

/** A file may hold anything: only an object with recipes and whole cells is a report. */
export function checkReport(found: unknown): Report | null {
  if (!isObject(found) || !isObject(found.recipes)) return null;
  const rows = Object.values(found.recipes);
  if (!rows.length || !rows.every(isObject)) return null;
  const { significance } = found;
  if (significance !== undefined) {
    if (!isObject(significance) || !isObject(significance.cells)) return null;
    if (!Object.values(significance.cells).every((row) => isObject(row) && Object.values(row).every(isCell))) return null;
  }
  return { ...(found as unknown as Report), dataset: String(found.dataset ?? ""), questions: Number(found.questions) || 0 };
}

// What is counted beside the measures: it comes last.
const COUNTED = /^(n|refused|failed|unscored)$|\.n$|^(seconds|calls|cached|timed|tokens|money)/;
const COSTS = ["seconds_per_query", "money_per_1k_queries"];
/** The measures and the costs a question, and under the fold what else was counted. */
export function groupMeasures(report: Report): { first: string[]; more: string[] } {
  const rows = Object.values(report.recipes);
  const all = [...new Set(rows.flatMap((row) => Object.keys(row).filter((name) => typeof row[name] === "number")))];
  const spent = COSTS.filter((name) => rows.some((row) => Number(row[name]) > 0));
  const first = [...all.filter((name) => !COUNTED.test(name)), ...spent];
  return { first, more: all.filter((name) => !first.includes(name)) };
}

export const MEASURES: Record<string, string> = {
  em: "Exact match",
  f1: "F1 of the words",
  "set-f1": "F1 of the list",
  subem: "Answer contained",
  "subem-short": "Short answer contained",
  "rouge-l": "ROUGE-L",
  mrr: "Mean reciprocal rank",
  "answer-mrr": "Mean reciprocal rank of answers",
  "subgraph-recall": "Recall of the subgraph",
  "subgraph-f1": "F1 of the subgraph",
  "path-recall": "Recall of the paths",
  "path-f1": "F1 of the paths",
  choice: "Right choices",
  "choice-f1": "F1 of the choices",
  grounded: "Sentences with support",
  "citation-precision": "Precision of citations",
  "citation-recall": "Recall of citations",
  refusal: "Right to refuse or answer",
  "refusal-precision": "Precision of refusals",
  "refusal-recall": "Recall of refusals",
  reversion: "Names restored",
  accuracy: "Accuracy by a judge",
  "judge@1": "Right by a judge",
  "a-score": "Answer score",
  "e-score": "Evidence score",
  "g-e": "Score by a judge",
  "r-s": "Similarity to the gold knowledge",
  n: "Questions measured",
  refused: "Refused",
  failed: "Failed",
  unscored: "Without a score",
  seconds_per_query: "Seconds a question",
  seconds_p50: "Seconds, half of the questions",
  seconds_p95: "Seconds, 95 % of the questions",
  calls: "Model calls",
  calls_per_query: "Model calls a question",
  cached_calls: "Replies from the cache",
  cached_questions: "Questions from the cache",
  timed_questions: "Questions timed",
  tokens: "Tokens",
  tokens_per_query: "Tokens a question",
  money: "Money",
  money_per_1k_queries: "Money for 1,000 questions",
};
const AT_K: Record<string, string> = {
  recall: "Recall at {n}",
  precision: "Precision at {n}",
  all: "All found at {n}",
  any: "Any found at {n}",
  ndcg: "nDCG at {n}",
  hits: "Hits at {n}",
  mrr: "Mean reciprocal rank at {n}",
  "step-recall": "Recall after {n} retrievals",
};
/** A measure in words; one that is not known is called as the report calls it. */
export function nameMeasure(name: string): string {
  const counted = /^(.+)\.n$/.exec(name);
  if (counted) return t("{metric}: questions measured", { metric: nameMeasure(counted[1]!) });
  const part = /^([a-z-]+)\.([a-z_-]+)$/.exec(name);
  if (part) return `${nameMeasure(part[1]!)}: ${part[2]}`;
  if (Object.hasOwn(MEASURES, name)) return t(MEASURES[name]!);
  const [, base = "", k = ""] = /^(.+)@(\d+)$/.exec(name) ?? [];
  return Object.hasOwn(AT_K, base) ? t(AT_K[base]!, { n: k }) : name;
}

/** The interval in words, and how sure the difference to the reference is. */
export function describeInterval(report: Report, recipe: string, measure: string): string {
  const cell = report.significance?.cells[recipe]?.[measure];
  if (!cell) return "";
  const { reference } = report.significance!;
  const compared = typeof reference === "string" ? reference : reference[measure];
  const range = `${shorten(cell.low)}–${shorten(cell.high)}`;
  return compared === recipe ? range : `${range}; p = ${shorten(cell.p)}`;
}
export const shorten = (value: number): string => Number(value.toFixed(4)).toLocaleString();

export interface Point {
  name: string;
  x: number;
  y: number;
}
/** Those points that no other one is both better and cheaper than, the cheapest first. */
export function findFront(points: Point[]): Point[] {
  const front: Point[] = [];
  for (const one of [...points].sort((a, b) => a.x - b.x || b.y - a.y)) if (!front.length || one.y > front[front.length - 1]!.y) front.push(one);
  return front;
}

export interface Label {
  x: number;
  y: number;
  width: number;
}
const TALL = 15;
/** Moves names up or down until none lies over another; `least` and `most` bound their height. */
export function spreadLabels(labels: Label[], least: number, most: number): number[] {
  const placed: Label[] = [];
  const meets = (a: Label, b: Label) => a.x < b.x + b.width && b.x < a.x + a.width && Math.abs(a.y - b.y) < TALL;
  const heights = new Array<number>(labels.length);
  const order = labels.map((_, n) => n).sort((a, b) => labels[a]!.y - labels[b]!.y || labels[a]!.x - labels[b]!.x);
  for (const n of order) {
    const wanted = labels[n]!;
    const tries = Array.from({ length: 2 * labels.length + 1 }, (_, k) => wanted.y + Math.ceil(k / 2) * TALL * (k % 2 ? 1 : -1));
    const free = (y: number) => y >= least && y <= most && !placed.some((one) => meets(one, { ...wanted, y }));
    const y = tries.find(free) ?? wanted.y;
    placed.push({ ...wanted, y });
    heights[n] = y;
  }
  return heights;
}
