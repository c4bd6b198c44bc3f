// Evaluations: reports of the workspace as tables with intervals, and a form to start one.
import { useState } from "preact/hooks";
import { at, get, post, type Job } from "../api";
import { t, translateMessage } from "../i18n";
import { useJob } from "../jobs";
import { useShared } from "../state";
import { Problem, useLoad } from "../ui";

interface Cell {
  mean: number;
  low: number;
  high: number;
  p: number;
  mark: string;
  best: boolean;
}
interface Report {
  dataset: string;
  questions: number;
  recipes: Record<string, Record<string, unknown>>;
  significance?: { reference: string; cells: Record<string, Record<string, Cell>> };
}
/** One question a line: the question, a tab or a bar, the answer. */
export function parseQuestions(text: string): { question: string; answers: string[] }[] {
  return text
    .split("\n")
    .map((line) => line.split(/\t|\s\|\s/).map((part) => part.trim()))
    .filter(([question]) => question)
    .map(([question, ...answers]) => ({ question: question!, answers: answers.filter(Boolean) }));
}

export function Evaluations({ canStart }: { canStart: boolean }) {
  const { workspace } = useShared();
  const [id, setId] = useState<string | null>(null);
  const [job, progress] = useJob(workspace, id);
  const [found, error] = useLoad(() => get<{ jobs: Job[] }>(at(workspace, "/jobs", { limit: 200 })), [workspace, job?.state]);
  const reports = (found?.jobs ?? []).filter((one) => ["eval", "compare"].includes(one.kind) && one.state === "done");
  if (!canStart && !reports.length) return null;
  return (
    <section class="panel">
      <h2>{t("Evaluations")}</h2>
      <Problem error={error} />
      {canStart && <Start onStarted={setId} />}
      {job && job.state !== "done" && (
        <p role="status">
          {job.state === "failed" ? translateMessage(job.error) : `${t(job.state)} ${progress ? `${progress.done} / ${progress.total}` : ""}`}
        </p>
      )}
      {reports.map((one) => (
        <details key={one.id} open={one.id === id}>
          <summary>
            {new Date(one.created * 1000).toLocaleString()} · {Object.keys((one.result as Report).recipes).join(", ")} ·{" "}
            {t("{n} questions", { n: (one.result as Report).questions })}
          </summary>
          <ReportTable report={one.result as Report} />
          <Curve report={one.result as Report} />
        </details>
      ))}
    </section>
  );
}

function Start({ onStarted }: { onStarted: (id: string) => void }) {
  const { workspace } = useShared();
  const [text, setText] = useState("");
  const [recipes, setRecipes] = useState("clew, bm25, naive");
  const [error, setError] = useState<unknown>(null);
  const questions = parseQuestions(text);
  const submit = async (event: Event) => {
    event.preventDefault();
    try {
      const names = recipes.split(",").map((name) => name.trim()).filter(Boolean);
      const body = { questions, recipes: names, answers: true, compare: names.length > 1 };
      onStarted((await post<Job>(at(workspace, "/evaluations"), body)).id);
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <details>
      <summary>{t("Start an evaluation")}</summary>
      <form class="fields" onSubmit={(e) => void submit(e)}>
        <label>
          {t("Questions with their answers, one a line: question | answer")}
          <textarea rows={4} value={text} onInput={(e) => setText(e.currentTarget.value)} />
        </label>
        <label>
          {t("Recipes, separated by commas")}
          <input value={recipes} onInput={(e) => setRecipes(e.currentTarget.value)} />
        </label>
        <Problem error={error} />
        <div>
          <button class="main" disabled={!questions.length}>
            {t("Start with {n} questions", { n: questions.length })}
          </button>
        </div>
      </form>
    </details>
  );
}

function ReportTable({ report }: { report: Report }) {
  const names = Object.keys(report.recipes);
  const metrics = [...new Set(names.flatMap((name) => Object.entries(report.recipes[name]!).filter(([, value]) => typeof value === "number").map(([metric]) => metric)))];
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={t("Report")}>
      <table>
        <thead>
          <tr>
            <th>{t("Measure")}</th>
            {names.map((name) => (
              <th key={name} class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {metrics.map((metric) => (
            <tr key={metric}>
              <th scope="row">{metric}</th>
              {names.map((name) => {
                const cell = report.significance?.cells[name]?.[metric];
                const value = report.recipes[name]![metric];
                const title = cell ? t("95 %: {a} to {b}; p = {p}", { a: cell.low, b: cell.high, p: cell.p }) : undefined;
                return (
                  <td key={name} class={cell?.best ? "number best" : "number"} title={title}>
                    {typeof value === "number" ? Number(value.toFixed(4)).toLocaleString() : "–"}
                    {cell?.mark}
                    {cell && <Interval cell={cell} />}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

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
const COSTS = ["seconds_per_query", "seconds"];

/** The first measure of each recipe against its seconds a question, and the line of the best. */
function Curve({ report }: { report: Report }) {
  const cells = report.significance?.cells ?? {};
  const metric = Object.keys(Object.values(cells)[0] ?? {})[0];
  const points = Object.entries(report.recipes).flatMap(([name, values]): Point[] => {
    const x = values[COSTS.find((cost) => typeof values[cost] === "number") ?? ""];
    const y = metric === undefined ? undefined : cells[name]?.[metric]?.mean;
    return typeof x === "number" && x > 0 && y !== undefined ? [{ name, x, y }] : [];
  });
  if (points.length < 2) return null;
  const logs = points.map((one) => Math.log10(one.x));
  const [least, most] = [Math.min(...logs), Math.max(...logs)];
  const x = (one: Point) => 40 + (340 * (Math.log10(one.x) - least)) / (most - least || 1);
  const y = (one: Point) => 170 - 150 * one.y;
  const line = findFront(points).map((one) => `${x(one)},${y(one)}`).join(" ");
  return (
    <figure class="curve">
      <figcaption class="small soft">{t("{metric} against seconds a question", { metric: metric! })}</figcaption>
      <svg viewBox="0 0 520 195" role="img" aria-label={points.map((one) => `${one.name}: ${one.y.toFixed(3)}, ${one.x.toFixed(3)} s`).join("; ")}>
        {[0, 0.5, 1].map((share) => (
          <g key={share}>
            <line class="grid" x1="40" x2="500" y1={170 - 150 * share} y2={170 - 150 * share} />
            <text x="32" y={174 - 150 * share} text-anchor="end">
              {share}
            </text>
          </g>
        ))}
        <polyline class="front" points={line} />
        {points.map((one) => (
          <g key={one.name}>
            <circle cx={x(one)} cy={y(one)} r="5" />
            <text class="name" x={x(one) + 9} y={y(one) - 5}>
              {one.name}
            </text>
            <text x={x(one)} y="188" text-anchor="middle">
              {one.x.toPrecision(2)} s
            </text>
          </g>
        ))}
      </svg>
    </figure>
  );
}

/** The 95 % interval on a line from 0 to 1. */
function Interval({ cell }: { cell: Cell }) {
  if (cell.high > 1 || cell.low < 0) return null;
  return (
    <svg class="interval" viewBox="0 0 100 8" width="100" height="8" aria-hidden="true">
      <line x1="0" x2="100" y1="4" y2="4" stroke="var(--line)" />
      <line x1={cell.low * 100} x2={cell.high * 100} y1="4" y2="4" stroke="var(--soft)" stroke-width="3" />
      <circle cx={cell.mean * 100} cy="4" r="3" fill="var(--thread)" />
    </svg>
  );
}
