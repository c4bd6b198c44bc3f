// Evaluations: reports of the workspace and of files as tables with intervals, and a form to start one.
import { useState } from "preact/hooks";
import { at, get, post, type Job } from "../api";
import { t, translateMessage } from "../i18n";
import { useJob } from "../jobs";
import { checkReport, describeInterval, findFront, groupMeasures, nameMeasure, shorten, spreadLabels, type Cell, type Point, type Report } from "../report";
import { toast, useShared } from "../state";
import { Icon, Problem, useLoad, Words } from "../ui";

/** One question a line: the question, a tab or a bar, the answer. */
export function parseQuestions(text: string): { question: string; answers: string[] }[] {
  return text
    .split("\n")
    .map((line) => line.split(/\t|\s\|\s/).map((part) => part.trim()))
    .filter(([question]) => question)
    .map(([question, ...answers]) => ({ question: question!, answers: answers.filter(Boolean) }));
}

interface Shown {
  id: string;
  title: string;
  report: Report;
}
const AT_ONCE = 50;
let opened: Shown[] = []; // files stay while the page does

export function Evaluations({ canStart }: { canStart: boolean }) {
  const { workspace } = useShared();
  const [id, setId] = useState<string | null>(null);
  const [limit, setLimit] = useState(AT_ONCE);
  const [job, progress] = useJob(workspace, id);
  const address = `${at(workspace, "/jobs", { limit })}&kind=eval&kind=compare`;
  const [found, error] = useLoad(() => get<{ jobs: Job[] }>(address), [workspace, job?.state, limit]);
  const [files, setFiles] = useState(opened);
  const jobs = (found?.jobs ?? []).flatMap((one): Shown[] => {
    const report = one.state === "done" ? checkReport(one.result) : null;
    return report ? [{ id: one.id, title: new Date(one.created * 1000).toLocaleString(), report }] : [];
  });
  const take = async (list: Iterable<File>) => setFiles((opened = [...(await readReports(list)), ...opened]));
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    void take(event.dataTransfer?.files ?? []);
  };
  return (
    <section class="panel" onDragOver={(e) => e.preventDefault()} onDrop={onDrop}>
      <h2>{t("Evaluations")}</h2>
      <Problem error={error} />
      {canStart && <Start onStarted={setId} />}
      {job && job.state !== "done" && (
        <p role="status">
          {job.state === "failed" ? <Words text={translateMessage(job.error)} /> : `${t(job.state)} ${progress ? `${progress.done} / ${progress.total}` : ""}`}
        </p>
      )}
      <OpenReport onFiles={(list) => void take(list)} />
      {[...files, ...jobs].map((one, n) => (
        <details key={one.id} open={one.id === id || (n === 0 && files.length > 0)}>
          <summary>
            {one.title} · {Object.keys(one.report.recipes).join(", ")} · {t("{n} questions", { n: one.report.questions })}
          </summary>
          <ReportTable report={one.report} />
          <Curve report={one.report} />
        </details>
      ))}
      {(found?.jobs.length ?? 0) >= limit && (
        <div>
          <button class="quiet" disabled={limit >= 500} onClick={() => setLimit(Math.min(500, limit * 3))}>
            {t("Show more")}
          </button>
        </div>
      )}
    </section>
  );
}

let number = 0;
/** Reads the files that are reports; of the others it is said. */
async function readReports(files: Iterable<File>): Promise<Shown[]> {
  const found: Shown[] = [];
  for (const file of files) {
    let report: Report | null = null;
    try {
      report = checkReport(JSON.parse(await file.text()));
    } catch {
      // not JSON: said below
    }
    if (report) found.push({ id: `file ${++number}`, title: [file.name, report.dataset].filter(Boolean).join(" · "), report });
    else toast(t("“{name}” is no report; choose the table.json of one.", { name: file.name }));
  }
  return found;
}

function OpenReport({ onFiles }: { onFiles: (files: Iterable<File>) => void }) {
  return (
    <label class="button quiet file">
      <span class="row">
        <Icon name="upload" /> <span><Words text={t("Open a report of the command line: `table.json` of `clew compare --out`")} /></span>
      </span>
      <input class="hidden" type="file" accept=".json,application/json" multiple onChange={(e) => (onFiles([...(e.currentTarget.files ?? [])]), (e.currentTarget.value = ""))} />
    </label>
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
  const { first, more } = groupMeasures(report);
  return (
    <>
      <MeasureTable report={report} measures={first} label={t("Report")} />
      {report.significance && <p class="small soft">{t("Under each mean its 95 % interval; p: against the reference; * p < 0.05, ** p < 0.01.")}</p>}
      {more.length > 0 && (
        <details>
          <summary class="small">{t("More")}</summary>
          <MeasureTable report={report} measures={more} label={t("More")} />
        </details>
      )}
    </>
  );
}

function MeasureTable({ report, measures, label }: { report: Report; measures: string[]; label: string }) {
  const names = Object.keys(report.recipes);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
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
          {measures.map((metric) => (
            <tr key={metric}>
              <th scope="row" title={metric}>
                {nameMeasure(metric)}
              </th>
              {names.map((name) => {
                const cell = report.significance?.cells[name]?.[metric];
                const value = report.recipes[name]![metric];
                return (
                  <td key={name} class="number">
                    <span class={cell?.best ? "best" : ""}>
                      {typeof value === "number" ? shorten(value) : "–"}
                      {cell?.mark}
                    </span>
                    {cell && <Interval cell={cell} />}
                    {cell && <span class="small soft range">{describeInterval(report, name, metric)}</span>}
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

const COSTS = ["seconds_per_query", "seconds"];
const LETTER = 7; // about the width of one in the drawing

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
  const x = (one: Point) => 40 + (320 * (Math.log10(one.x) - least)) / (most - least || 1);
  const y = (one: Point) => 170 - 150 * one.y;
  const line = findFront(points).map((one) => `${x(one)},${y(one)}`).join(" ");
  const words = points.map((one) => `${one.name} · ${one.x.toPrecision(2)} s`);
  const heights = spreadLabels(points.map((one, n) => ({ x: x(one) + 12, y: y(one) - 2, width: LETTER * words[n]!.length })), 12, 190);
  return (
    <figure class="curve">
      <figcaption class="small soft">{t("{metric} against seconds a question", { metric: nameMeasure(metric!) })}</figcaption>
      <svg viewBox="0 0 560 200" role="img" aria-label={points.map((one) => `${one.name}: ${one.y.toFixed(3)}, ${one.x.toFixed(3)} s`).join("; ")}>
        {[0, 0.5, 1].map((share) => (
          <g key={share}>
            <line class="grid" x1="40" x2="550" y1={170 - 150 * share} y2={170 - 150 * share} />
            <text x="32" y={174 - 150 * share} text-anchor="end">
              {share}
            </text>
          </g>
        ))}
        <polyline class="front" points={line} />
        {points.map((one, n) => (
          <g key={one.name}>
            {Math.abs(heights[n]! - y(one)) > 10 && <line class="lead" x1={x(one)} y1={y(one)} x2={x(one) + 11} y2={heights[n]! - 4} />}
            <circle cx={x(one)} cy={y(one)} r="5" />
            <text class="name" x={x(one) + 12} y={heights[n]}>
              {words[n]}
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
