// Compare: recipes side by side on one question; evaluations with significance.
import { useState } from "preact/hooks";
import { ApiError, at, post, type Answer, type Citation } from "../api";
import { t, translateMessage } from "../i18n";
import { Markdown } from "../markdown";
import { Reader } from "../reader";
import { Candidate } from "../candidate";
import { explainRefusal, headRefusal, isBareRefusal, partRepeated } from "../share";
import { mayWrite, useShared } from "../state";
import { describe, formatCost, RecipeSelect, Words } from "../ui";
import { Evaluations } from "./evaluations";

interface Column {
  recipe: string;
  answer: Answer | null;
  problem: string;
}

/** Documents that only this column found, those all found, and the rest. */
export function markEvidence(columns: (string[] | null)[], at: number): Map<string, "only" | "all" | "some"> {
  const known = columns.filter((one): one is string[] => one !== null);
  const marks = new Map<string, "only" | "all" | "some">();
  for (const doc of columns[at] ?? []) {
    const count = known.filter((one) => one.includes(doc)).length;
    marks.set(doc, count === 1 && known.length > 1 ? "only" : count === known.length ? "all" : "some");
  }
  return marks;
}
const docsOf = (answer: Answer | null): string[] | null =>
  answer && [...new Set([...answer.citations.map((one) => one.doc), ...answer.chunks.map((one) => one.doc)])].slice(0, 10);
// What the server writes behind a sentence, as in `clew.agents.messages`; a test compares both.
export const OWN_MARKS = ["(not found in the documents)", "（文档中未找到）"];
/** How many sentences of an answer cite something, of how many, and how sure it is. */
export function measureSupport(answer: Answer): { cited: number; all: number; sure: number | null } {
  if (answer.verdict === "refused") return { cited: 0, all: 0, sure: answer.confidence ?? null };
  const text = partRepeated(answer.answer, answer.candidate).rest.replace(/([.!?。！？”"])\s*((?:\[\d{1,3}\])+)(?: \([^)\n]*\)$)?/gm, "$2$1");
  const said = OWN_MARKS.reduce((left, mark) => left.replaceAll(mark, ""), text);
  const sentences = said.split(/(?<=[.!?。！？][”"]?)\s+|\n+/).filter((one) => /\p{L}/u.test(one));
  const cited = sentences.filter((one) => /\[\d{1,3}\](?!\()/.test(one)).length;
  return { cited, all: sentences.length, sure: answer.confidence ?? null };
}
/** What is best of each: the largest share of cited sentences, and the surest. */
export function findBest(answers: Answer[]): { support: number; sure: number } {
  const found = answers.map(measureSupport);
  return {
    support: Math.max(0, ...found.map((one) => (one.all ? one.cited / one.all : 0))),
    sure: Math.max(0, ...found.map((one) => one.sure ?? 0)),
  };
}
const shortOf = (answer: Answer): string => (answer.verdict === "refused" ? "–" : answer.candidate || answer.answer).trim().toLowerCase();

export function Compare() {
  const { workspace } = useShared();
  const [question, setQuestion] = useState("");
  const [recipes, setRecipes] = useState(["clew", "bm25"]);
  const [columns, setColumns] = useState<Column[]>([]);
  const [reading, setReading] = useState<Citation | null>(null);
  const run = async (event: Event) => {
    event.preventDefault();
    const blank = recipes.map((recipe) => ({ recipe, answer: null, problem: "" }));
    setColumns(blank);
    await Promise.all(
      recipes.map(async (recipe, n) => {
        let some: Partial<Column>;
        try {
          some = { answer: await post<Answer>(at(workspace, "/ask"), { question, recipe: recipe || null }) };
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          some = { problem: describe(error) };
        }
        setColumns((all) => all.map((one, at) => (at === n ? { ...one, ...some } : one)));
      }),
    );
  };
  const found = columns.flatMap((one) => (one.answer ? [one.answer] : []));
  const answers = found.map(shortOf);
  const best = found.length > 1 ? findBest(found) : null;
  const agree = answers.length > 1 && new Set(answers).size === 1;
  return (
    <div class="page">
      <h1>{t("Compare recipes")}</h1>
      <form class="card fields" onSubmit={(e) => void run(e)}>
        <textarea rows={2} required maxLength={20_000} aria-label={t("Your question")} placeholder={t("Ask a question …")} value={question} onInput={(e) => setQuestion(e.currentTarget.value)} />
        <div class="row">
          {recipes.map((recipe, n) => (
            <RecipeSelect
              key={n}
              label={t("Recipe {n}", { n: n + 1 })}
              value={recipe}
              onChange={(name) => setRecipes(recipes.map((one, at) => (at === n ? name : one)))}
            />
          ))}
          {recipes.length < 4 && (
            <button type="button" class="quiet" onClick={() => setRecipes([...recipes, "hybrid"])}>
              + {t("Add a recipe")}
            </button>
          )}
          {recipes.length > 2 && (
            <button type="button" class="quiet" onClick={() => setRecipes(recipes.slice(0, -1))}>
              − {t("Remove the last")}
            </button>
          )}
          <button class="main">{t("Compare")}</button>
        </div>
      </form>
      {answers.length > 1 && (
        <p role="status" class={agree ? "best" : "wrong"}>
          {agree ? t("All give the same answer.") : t("The answers differ.")}
        </p>
      )}
      {columns.length > 0 && (
        <div class="columns">
          {columns.map((one, n) => (
            <ColumnView key={n} column={one} marks={markEvidence(columns.map((c) => docsOf(c.answer)), n)} best={best} onRead={setReading} />
          ))}
        </div>
      )}
      <Evaluations canStart={mayWrite()} />
      {reading && <Reader place={reading} onClose={() => setReading(null)} />}
    </div>
  );
}

interface ColumnProps {
  column: Column;
  marks: Map<string, string>;
  best: { support: number; sure: number } | null;
  onRead: (place: Citation) => void;
}
function Support({ answer, best }: { answer: Answer; best: ColumnProps["best"] }) {
  const { cited, all, sure } = measureSupport(answer);
  const mark = (value: number, most: number) => (best && value > 0 && value >= most ? "best" : "");
  return (
    <p class="figures small">
      <span class={mark(all ? cited / all : 0, best?.support ?? 0)}>{t("{n} of {all} sentences cited", { n: cited, all })}</span>
      {sure !== null && <span class={mark(sure, best?.sure ?? 0)}>{t("{n} % sure", { n: Math.round(sure * 100) })}</span>}
    </p>
  );
}

function ColumnView({ column, marks, best, onRead }: ColumnProps) {
  const { answer } = column;
  const cite = (number: number) => {
    const place = answer!.citations[number - 1];
    if (!place) return <sup class="cite">{number}</sup>;
    return (
      <button class="cite" aria-label={t("Citation {n}: {doc}", { n: number, doc: place.doc })} onClick={() => onRead(place)}>
        {number}
      </button>
    );
  };
  const open = (doc: string) => {
    const cited = answer!.citations.find((one) => one.doc === doc);
    const chunk = answer!.chunks.find((one) => one.doc === doc);
    if (cited) onRead(cited);
    else if (chunk) onRead({ doc, chunk: chunk.id, start: chunk.start, end: chunk.end, quote: chunk.text });
  };
  const headed = answer?.candidate && answer.verdict === "answered";
  const parted = headed ? partRepeated(answer.answer, answer.candidate) : null;
  return (
    <section class="card column" aria-busy={!answer && !column.problem}>
      <h2>{column.recipe || t("default recipe")}</h2>
      {column.problem && <p class="problem">{column.problem}</p>}
      {!answer && !column.problem && <div class="loading" role="status" aria-label={t("Loading")} />}
      {answer && (
        <>
          {answer.verdict === "refused" && (
            <div class="refusal">
              <strong>{t(headRefusal(answer))}</strong>
              {answer.missing && <p>{explainRefusal(answer)}</p>}
            </div>
          )}
          {headed && <Candidate answer={answer} marks={parted!.marks} cite={cite} />}
          {!isBareRefusal(answer) && <Markdown text={parted ? parted.rest : answer.answer} cite={cite} />}
          {answer.note && <p class="small soft"><Words text={translateMessage(answer.note)} /></p>}
          <Support answer={answer} best={best} />
          <p class="figures small soft">
            <span>{t("{n} s", { n: answer.seconds.toFixed(2) })}</span>
            <span>{formatCost(answer.usage)}</span>
          </p>
          <h3>{t("Evidence")}</h3>
          <ul class="evidence">
            {[...marks].map(([doc, mark]) => (
              <li key={doc} class={mark === "only" ? "only" : "shared"}>
                <button class="plain" onClick={() => open(doc)}>
                  {answer.chunks.find((one) => one.doc === doc)?.title || doc}
                </button>{" "}
                {mark === "only" && <span class="tag">{t("only here")}</span>}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
