// The steps of an agent as a tree that grows while it works: what each asked, read, found and cost.
import type { Answer } from "../api";
import type { ShownStep } from "../ask-model";
import { t, tn, translateMessage, translateStep } from "../i18n";
import { formatCost, formatSeconds, Words } from "../ui";

interface Branch {
  step: ShownStep;
  below: Branch[];
}
/** Nests a flat list of steps by their depth. */
export function nest(steps: ShownStep[]): Branch[] {
  const roots: Branch[] = [];
  const path: Branch[] = [];
  for (const step of steps) {
    const branch = { step, below: [] };
    const depth = Math.min(step.depth, path.length);
    path.length = depth;
    (path[depth - 1]?.below ?? roots).push(branch);
    path.push(branch);
  }
  return roots;
}

export type Verdict = "found" | "nothing" | "refused" | "failed";
const VERDICTS: [RegExp, Verdict][] = [
  [/^(failed|unusable reply)\b/, "failed"],
  [/^refused\b|"(?:sufficient|enough)":\s*false|"verdict":\s*"(?:no|reject)/i, "refused"],
  [/^nothing\b/, "nothing"],
];
/** How a step ended, by what it says. */
export function judgeStep(step: ShownStep): Verdict | null {
  if (step.open || !step.output) return null;
  return VERDICTS.find(([pattern]) => pattern.test(step.output!))?.[1] ?? "found";
}
const MARKS: Record<Verdict, [string, string]> = {
  found: ["✓", "found"],
  nothing: ["∅", "nothing found"],
  refused: ["✕", "refused"],
  failed: ["!", "failed"],
};

/** A reply of a model as lines, if it is whole JSON; else the text itself. */
export function readReply(text: string): string[] {
  if (!/^[[{]/.test(text)) return [text];
  try {
    const found: unknown = JSON.parse(text);
    return Object.entries(found as object).map(([name, value]) => `${name}: ${flatten(value)}`);
  } catch {
    // Cut by the server: its words without the signs of JSON.
    return [`${text.replace(/[{}[\]"]+/g, " ").replace(/\s+([,:])/g, "$1").trim()} …`];
  }
}
const flatten = (value: unknown): string =>
  Array.isArray(value)
    ? value.map(flatten).join("; ")
    : value && typeof value === "object"
      ? Object.values(value).map(flatten).join(" – ")
      : String(value);

const SCORE = String.raw`-?\d\.\d\d`;
// What a method reckons with, such as “by together 1.00, hops 0.50”: names of measures, each with its value.
const SCORES = new RegExp(String.raw`(?:^${SCORE})?\s*(?:\bby )?(?:(?:^|\b)[a-z][a-z ]* ${SCORE}(?:, |$)){2,}`, "g");
const COUNTS: Record<string, [string, string]> = {
  chunks: ["1 passage", "{n} passages"],
  entities: ["1 entity", "{n} entities"],
  facts: ["1 fact", "{n} facts"],
  paths: ["1 path", "{n} paths"],
  communities: ["1 community", "{n} communities"],
};
/** What a step says, without the measures of its method; “chunks=8 facts=0” in words. */
export function sayPlainly(text: string): string {
  const counts = [...text.matchAll(/(\w+)=(\d+)/g)];
  if (counts.length && counts.map((one) => one[0]).join(" ") === text) {
    const found = counts.flatMap(([, name = "", n]) => (Number(n) && name in COUNTS ? [tn(Number(n), ...COUNTS[name]!)] : []));
    return found.join(", ") || "nothing";
  }
  return text
    .replace(SCORES, "")
    .replace(new RegExp(String.raw`\s*\(${SCORE}\)`, "g"), "")
    .replace(new RegExp(String.raw`\(${SCORE}, `, "g"), "(");
}

export function Reasoning(props: { steps: ShownStep[]; question: string; answer: Answer | null; onRead: (doc: string) => void }) {
  const { steps, question, answer, onRead } = props;
  return (
    <>
      <Level branches={dropInner(nest(steps))} above={question} onRead={onRead} />
      {answer && <Conclusion answer={answer} />}
    </>
  );
}

/** Leaves what is told of the question: no calls of code within a search, and no step that only reckoned. */
export function dropInner(branches: Branch[]): Branch[] {
  const told = ({ step, below }: Branch) => !step.step.includes("(") && (below.length > 0 || step.open || !step.output || sayPlainly(step.output) !== "");
  const inSearch = (step: ShownStep) => Boolean(step.docs?.length);
  return branches.filter(told).map((one) => ({ ...one, below: inSearch(one.step) ? [] : dropInner(one.below) }));
}

interface LevelProps {
  branches: Branch[];
  above: string;
  onRead: (doc: string) => void;
}
function Level({ branches, above, onRead }: LevelProps) {
  return (
    <ul class="reasoning">
      {branches.map((branch, n) => {
        const asked = branch.step.input || above;
        const others = branch.below;
        const deep = !branch.step.open && branch.step.depth > 0;
        return (
          <li key={n} class={branch.step.open ? "open" : undefined}>
            <Line step={branch.step} above={above} onRead={onRead} />
            {others.length > 0 && deep && (
              <details class="small">
                <summary>{tn(others.length, "1 step", "{n} steps")}</summary>
                <Level branches={others} above={asked} onRead={onRead} />
              </details>
            )}
            {others.length > 0 && !deep && <Level branches={others} above={asked} onRead={onRead} />}
          </li>
        );
      })}
    </ul>
  );
}

function Line({ step, above, onRead }: { step: ShownStep; above: string; onRead: (doc: string) => void }) {
  const verdict = judgeStep(step);
  const docs = step.docs ?? [];
  const lines = readReply(sayPlainly(step.output ?? ""));
  return (
    <div class="step">
      <div class="step-head">
        {verdict && (
          <span class={`verdict ${verdict}`} role="img" aria-label={t(MARKS[verdict][1])} title={t(MARKS[verdict][1])}>
            {MARKS[verdict][0]}
          </span>
        )}
        <span class="step-name">{translateStep(step.step.split("(")[0]!)}</span>
        <span class="small soft step-figures">{step.open ? t("working …") : formatFigures(step)}</span>
      </div>
      {step.input && step.input !== above && <p class="step-in">{translateMessage(step.input)}</p>}
      {docs.length > 0 ? (
        <details class="step-out">
          <summary>{tn(docs.length, "1 document was read", "{n} documents were read")}</summary>
          <ul class="docs">
            {docs.map((doc) => (
              <li key={doc}>
                <button class="plain" onClick={() => onRead(doc)}>
                  {doc}
                </button>
              </li>
            ))}
          </ul>
        </details>
      ) : (
        lines.map((line, n) => line && <p key={n} class="step-out"><Words text={translateMessage(line)} /></p>)
      )}
    </div>
  );
}
/** Seconds, and where a model was asked also calls, tokens and money. */
function formatFigures(step: ShownStep): string {
  const asked = step.usage && (step.usage.calls || step.usage.cached_calls);
  const shown = [!step.seconds || step.seconds < 0.005 ? "" : formatSeconds(step.seconds), asked ? formatCost(step.usage!) : ""];
  return shown.filter(Boolean).join(" · ");
}

/** The last line: the verdict, why it was refused, how sure it is, and the cost of all steps. */
function Conclusion({ answer }: { answer: Answer }) {
  const verdict: Verdict = answer.verdict === "answered" ? "found" : "refused";
  const sure = answer.confidence;
  return (
    <div class="step conclusion">
      <div class="step-head">
        <span class={`verdict ${verdict}`} aria-hidden="true">
          {MARKS[verdict][0]}
        </span>
        <span class="step-name">{verdict === "found" ? t("answered") : t("refused")}</span>
        <span class="small soft step-figures">
          {[formatSeconds(answer.seconds), formatCost(answer.usage)].join(" · ")}
        </span>
      </div>
      {verdict === "refused" && answer.missing && (
        <p class="step-out">
          <Words text={t("Why: {why}", { why: translateMessage(answer.missing) })} />
        </p>
      )}
      {typeof sure === "number" && <p class="step-in">{t("{n} % sure", { n: Math.round(sure * 100) })}</p>}
    </div>
  );
}
