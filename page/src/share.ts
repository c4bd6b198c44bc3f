// An answer as Markdown with footnotes, and as a link that holds the answer itself.
import type { Answer, Citation } from "./api";
import { t, translateMessage } from "./i18n";
import { dropMarks } from "./markup";

/** Leaves only the words of pictures and of links that lead to no web page, and keeps HTML text where it is pasted. */
const disarm = (text: string): string =>
  text
    .replace(/!\[([^\]\n]*)\]\([^\s)]*\)/g, "$1")
    .replace(/\[([^\]\n]*)\]\((?!https?:)[^\s)]*\)+/g, "$1")
    .replace(/(`[^`]*`)|<(?=[a-z/!?])/gi, (all, code: string | undefined) => code ?? `\\${all}`);

/** The short answer and the text, with footnotes that name document, page and characters. */
export function toMarkdown(answer: Answer): string {
  const { marks, rest } = isHeaded(answer) ? partRepeated(answer.answer, answer.candidate) : { marks: [], rest: answer.answer };
  const short = isHeaded(answer) && rest.trim() !== answer.candidate ? [answer.candidate, ...marks.map((n) => `[${n}]`)].join(" ") : "";
  const head = short && !isSure(answer) ? `${t("Not sure, perhaps:")} ${short}` : short;
  const text = spaceParagraphs(disarm(head ? `${head}\n${rest}` : rest)).replace(/\[(\d{1,3})\](?!\()/g, "[^$1]");
  const quote = (one: Citation) => disarm(dropMarks(one.quote).replaceAll("\n", " "));
  const notes = answer.citations.map((one, n) => `[^${n + 1}]: ${formatPlace(one)}: “${quote(one)}”`);
  return [`**${answer.question}**`, "", text, "", ...notes].join("\n").trimEnd() + "\n";
}
/** Puts a blank line between lines that are paragraphs of their own; lists, tables and code stay together. */
export function spaceParagraphs(text: string): string {
  const joined = /^\s*(?:[-*+|>]|\d{1,3}[.)]\s)/;
  let code = false;
  let before = "";
  return text
    .split("\n")
    .map((line, n) => {
      const apart = n > 0 && !code && before.trim() && line.trim() && !(joined.test(line) && joined.test(before));
      if (line.startsWith("```")) code = !code;
      before = line;
      return apart ? `\n${line}` : line;
    })
    .join("\n");
}
const formatPlace = (one: Citation): string => `${formatSource(one).replace(" · ", ", ")}, ${one.start}–${one.end}`;
/** Whether the short answer stands above the text. */
export const isHeaded = ({ candidate, verdict }: Answer): boolean => Boolean(candidate) && verdict === "answered" && candidate.length < 120;
/** The document and the place in it: the page of the quote itself, or the row of a table. */
export function formatSource(one: Citation): string {
  if (one.page) return `${one.doc} · ${t("Page {n}", { n: one.page })}`;
  // The heading of a row is its number, below the name of its sheet.
  const [, sheet = "", row] = /^(?:(.+) > )?row (\d+)$/.exec(one.heading ?? "") ?? [];
  return row ? t("{file}, row {n}", { file: [one.doc, sheet].filter(Boolean).join(", "), n: row }) : one.doc;
}

const toText = (bytes: Uint8Array): string =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
const toBytes = (text: string): Uint8Array =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (char) => char.charCodeAt(0));

async function pass(bytes: Uint8Array, through: CompressionStream | DecompressionStream): Promise<Uint8Array> {
  const sent = new Blob([bytes as BlobPart]).stream().pipeThrough(through);
  return new Uint8Array(await new Response(sent).arrayBuffer());
}

/** Packs an answer with its citations and the facts they state; what was only read is left out. */
export async function packAnswer(answer: Answer): Promise<string> {
  const stated = answer.facts.filter((fact) =>
    answer.citations.some((one) => one.doc === fact.doc && fact.start < one.end && fact.end > one.start),
  );
  const kept = { ...answer, facts: stated, chunks: [], entities: [], paths: answer.paths.slice(0, 1), trace: undefined };
  return toText(await pass(new TextEncoder().encode(JSON.stringify(kept)), new CompressionStream("deflate-raw")));
}
export async function unpackAnswer(packed: string): Promise<Answer | null> {
  try {
    const text = new TextDecoder().decode(await pass(toBytes(packed), new DecompressionStream("deflate-raw")));
    return checkAnswer(JSON.parse(text));
  } catch {
    return null; // a link that was cut or mistyped
  }
}

/** A link may hold anything: only an object with the fields that are drawn is taken. */
export function checkAnswer(found: unknown): Answer | null {
  const one = found as Answer;
  const texts = [one?.question, one?.answer, one?.recipe, one?.verdict];
  const lists = [one?.citations, one?.facts, one?.paths];
  if (texts.some((text) => typeof text !== "string") || !lists.every(Array.isArray)) return null;
  const cited = one.citations.every((c) => typeof c.doc === "string" && typeof c.quote === "string" && c.start <= c.end);
  const stated = one.facts.every((f) => Array.isArray(f.entities) && f.entities.every((e) => typeof e === "string"));
  return cited && stated && one.usage ? one : null;
}

// By what the server says, in both languages it says it in.
const REFUSALS: [RegExp, string][] = [
  [/^no answer is certain enough|^没有足够确定/, "Not answered: it is not sure enough."],
  [/^no language model is configured/, "Not answered: no model is set up for it."],
  [/^this recipe reads no documents/, "Not answered: this recipe reads no documents."],
  [/^there are no documents|^没有可供作答/, "Not answered: there are no documents yet."],
  [/^this is small talk/, "Not answered: it is not clear what is asked."],
];
export const NOT_SAID = "Not answered: the documents do not say it.";
/** The heading of a refusal, by its reason. */
export function headRefusal({ missing, complete }: Answer): string {
  if (!complete) return "Not answered: the work was ended before an answer was found.";
  return REFUSALS.find(([pattern]) => pattern.test(missing))?.[1] ?? NOT_SAID;
}

const ENDED = /^(?:(.*); )?given without the model: (.+)$/s;
/** Why an answer is not complete, and what else its note says. */
export function partNote({ complete, note }: Answer): { ended: string; rest: string } {
  const [, rest = "", ended = ""] = ENDED.exec(note) ?? [];
  return complete || !ended ? { ended: "", rest: note } : { ended, rest };
}

/** What is missing in the documents, or why else there is no answer. */
export function explainRefusal(answer: Answer): string {
  const said = translateMessage(answer.missing);
  return headRefusal(answer) === NOT_SAID ? t("Missing: {what}", { what: said }) : t("Why: {why}", { why: said });
}

/** Whether a refusal says no more than its reason, which stands above it. */
export const isBareRefusal = ({ verdict, answer, missing }: Answer): boolean =>
  verdict === "refused" && answer.length < missing.length + 20 && answer.includes(missing);

const MARKS = /(?:\s*\[\d{1,3}\])+[.。]?$/;
/** Parts a first line that only repeats the short answer, which stands above it, from the rest. */
export function partRepeated(text: string, short: string): { marks: number[]; rest: string } {
  const [first = "", ...rest] = text.split("\n");
  const said = first.replace(MARKS, "").trim();
  const repeats = short && said.endsWith(short) && said.length < short.length + 40;
  if (!repeats) return { marks: [], rest: text };
  const marks = [...(MARKS.exec(first)?.[0] ?? "").matchAll(/\d+/g)].map(([number]) => Number(number));
  // A line that is all there is stays, unless its citations can stand with the short answer.
  return rest.join("").trim() || marks.length ? { marks, rest: rest.join("\n") } : { marks, rest: text };
}

const SURE = 0.5; // as `[answer] confidence` is by default: below it the server would rather refuse
/** Whether the short answer may stand as a fact above the text. */
export const isSure = ({ confidence }: Answer): boolean => typeof confidence !== "number" || confidence >= SURE;
