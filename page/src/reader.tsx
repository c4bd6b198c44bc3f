// A document at a span: the text as it was read, the cited characters marked, pages named.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { at, download, get, type Citation } from "./api";
import { t, translateMessage } from "./i18n";
import { dropMarks, NO_MARKUP, readMarkup, type Markup } from "./markup";
import { PdfPage } from "./pdf";
import { formatSource } from "./share";
import { current } from "./state";
import { findTables, type Row, type Table } from "./tables";
import { describe, Drawer, Problem, useLoad } from "./ui";

export interface Reading {
  id: string;
  names: string[];
  title: string;
  text: string;
  page_starts: number[];
  metadata: Record<string, unknown>;
  original: boolean;
  /** Why there is no file to send or to draw. */
  no_original: string;
  facts: { key: number; text: string; relation: string; start: number; end: number }[];
}
export interface Span {
  start: number;
  end: number;
}
const WINDOW = 40_000; // characters drawn on each side of the span

export interface Piece {
  text: string;
  mark: "" | "here" | "also";
  page: number;
  heading: boolean;
}
/** Cuts code points, as the server counts them, into marked and plain pieces and at pages and headings. */
export function cutPieces(chars: string[], here: Span, also: Span[], pages: number[], from: number, to: number, markup: Markup = NO_MARKUP): Piece[] {
  const inside = (n: number) => n > from && n < to;
  const cuts = new Set([from, to]);
  for (const one of [here, ...also, ...markup.headings]) [one.start, one.end].filter(inside).forEach((n) => cuts.add(n));
  pages.filter(inside).forEach((n) => cuts.add(n));
  const places = [...cuts].sort((a, b) => a - b);
  const pageAt = new Map(pages.map((start, n) => [start, n + 1]));
  return places.slice(0, -1).map((start, n) => {
    const covers = (one: Span) => one.start <= start && start < one.end;
    const mark = covers(here) ? "here" : also.some(covers) ? "also" : "";
    const text = chars.slice(start, places[n + 1]).map((char, at) => markup.shown.get(start + at) ?? char);
    return { text: text.join(""), mark, page: pageAt.get(start) ?? 0, heading: markup.headings.some(covers) };
  });
}
export const pageOf = (pages: number[], place: number): number => pages.filter((start) => start <= place).length;

function Text({ reading, here, also }: { reading: Reading; here: Span; also: Span[] }) {
  const chars = useMemo(() => Array.from(reading.text), [reading]);
  const markup = useMemo(() => readMarkup(chars, reading.metadata.format), [chars]);
  const tables = useMemo(() => findTables(chars, reading.metadata), [chars]);
  const [before, setBefore] = useState(WINDOW);
  const [after, setAfter] = useState(WINDOW);
  const shown = useRef<HTMLDivElement>(null);
  useEffect(() => shown.current?.querySelector(".here")?.scrollIntoView({ block: "center" }), [reading, here.start, here.end]);
  const from = Math.max(0, here.start - before);
  const to = Math.min(chars.length, here.end + after);
  return (
    <div class="text" lang="" ref={shown}>
      {from > 0 && (
        <button class="quiet" onClick={() => setBefore(before + WINDOW)}>
          {t("Show what stands before")}
        </button>
      )}
      <div class="prose" tabIndex={0} role="document" aria-label={t("Text of the document")}>
        {cutTables(tables, from, to).map((part) =>
          "rows" in part ? (
            <TableView key={part.start} table={part} here={here} also={also} />
          ) : (
            cutPieces(chars, here, also, reading.page_starts, part.start, part.end, markup).map((piece, n) => {
              const page = piece.page > 0 && <span class="page-mark">{t("Page {n}", { n: piece.page })}</span>;
              const text = piece.heading ? <b class="heading">{piece.text}</b> : piece.text;
              return [page, piece.mark ? <mark key={n} class={piece.mark}>{text}</mark> : text];
            })
          ),
        )}
      </div>
      {to < chars.length && (
        <button class="quiet" onClick={() => setAfter(after + WINDOW)}>
          {t("Show what follows")}
        </button>
      )}
    </div>
  );
}

/** Tables with their rows in this range, and the ranges of text between them. */
export function cutTables(tables: Table[], from: number, to: number): (Table | Span)[] {
  const parts: (Table | Span)[] = [];
  let at = from;
  for (const table of tables) {
    const rows = table.rows.filter((row) => row.end > from && row.start < to);
    if (!rows.length) continue;
    if (table.start > at) parts.push({ start: at, end: table.start });
    parts.push({ ...table, rows });
    at = Math.min(to, table.end + 1); // without the end of its last line
  }
  return at < to ? [...parts, { start: at, end: to }] : parts;
}

/** Rows with the cited one marked, and in it the cited cell where not all of the row is cited. */
function TableView({ table, here, also }: { table: Table; here: Span; also: Span[] }) {
  const meets = (one: Span, place: Span) => place.start < one.end && one.start < place.end;
  const markOf = (row: Row) => (meets(row, here) ? "here" : also.some((one) => meets(row, one)) ? "also" : undefined);
  const numbered = table.rows.some((row) => row.number);
  const isWhole = (row: Row) => row.cells.every((cell) => !cell?.text || meets(cell, here));
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            {numbered && <th scope="col">{t("Row")}</th>}
            {table.columns.map((column) => (
              <th key={column} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.rows.map((row) => {
            const mark = markOf(row);
            const part = mark === "here" && !isWhole(row);
            return (
              <tr key={row.start} class={mark} aria-current={mark === "here" ? "true" : undefined}>
                {numbered && <td class="small soft">{row.number}</td>}
                {row.cells.map((cell, n) => (
                  <td key={n}>{cell && part && meets(cell, here) ? <mark>{cell.text}</mark> : dropMarks(cell?.text ?? "")}</td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

/** A PDF as its pages where the server has the file, else as the text that was read. */
function Body(props: { reading: Reading; workspace: string; page: number; here: Span; also: Span[] }) {
  const { reading, workspace, page, here, also } = props;
  const [asText, setAsText] = useState(false);
  const [undrawn, setUndrawn] = useState({ id: "", why: "" });
  if (page < 1 || reading.metadata.format !== "pdf") return <Text reading={reading} here={here} also={also} />;
  const why = undrawn.id === reading.id ? undrawn.why : reading.no_original;
  if (why)
    return (
      <>
        <p class="note small" role="status">
          {t("The page cannot be drawn, so its text is shown: {why}.", { why: translateMessage(why) })}
        </p>
        <Text reading={reading} here={here} also={also} />
      </>
    );
  return (
    <>
      <div class="row">
        {[false, true].map((text) => (
          <button key={String(text)} class="quiet" aria-pressed={asText === text} onClick={() => setAsText(text)}>
            {text ? t("Text") : t("Page")}
          </button>
        ))}
      </div>
      {asText ? (
        <Text reading={reading} here={here} also={also} />
      ) : (
        <PdfPage workspace={workspace} id={reading.id} page={page} span={here} onMissing={(said) => setUndrawn({ id: reading.id, why: said })} />
      )}
    </>
  );
}

async function save(reading: Reading, workspace: string, onError: (error: unknown) => void): Promise<void> {
  try {
    const blob = await download(at(workspace, `/documents/${reading.id}/original`));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = reading.names[0]?.split("/").pop() ?? "document";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  } catch (error) {
    onError(error);
  }
}

/** The drawer; `all` are the citations of the same answer, to step through. */
export function Reader(props: { place: Citation; all?: Citation[]; workspace?: string; onClose: () => void }) {
  const { all = [], onClose } = props;
  const workspace = props.workspace ?? current().workspace;
  const [place, setPlace] = useState(props.place);
  const [facts, setFacts] = useState(false);
  const [problem, setProblem] = useState("");
  useEffect(() => setPlace(props.place), [props.place]);
  const [reading, error, retry] = useLoad(
    () => get<Reading>(at(workspace, "/reading", { name: place.doc, facts })),
    [place.doc, facts, workspace],
  );
  const ready = reading?.names.includes(place.doc) ? reading : null;
  const number = all.indexOf(place);
  const also = all.filter((one) => one.doc === place.doc && one !== place);
  const page = ready?.page_starts.length ? pageOf(ready.page_starts, place.start) : 0;
  return (
    <Drawer title={ready?.title || place.doc} onClose={onClose}>
      <p class="where small soft">
        {formatSource({ ...place, page: place.end > place.start && page ? page : null })}
        {place.end > place.start && ` · ${t("characters {a}–{b}", { a: place.start, b: place.end })}`}
      </p>
      <div class="row">
        {all.length > 1 && number >= 0 && (
          <div class="steps">
            <button class="quiet" disabled={number < 1} onClick={() => setPlace(all[number - 1]!)}>
              ← {t("Previous")}
            </button>
            <span class="small">{t("Citation {n} of {all}", { n: number + 1, all: all.length })}</span>
            <button class="quiet" disabled={number >= all.length - 1} onClick={() => setPlace(all[number + 1]!)}>
              {t("Next")} →
            </button>
          </div>
        )}
        <button class="quiet" aria-pressed={facts} onClick={() => setFacts(!facts)}>
          {t("Facts from this document")}
        </button>
        {ready?.original && (
          <button class="quiet" onClick={() => void save(ready, workspace, (e) => setProblem(describe(e)))}>
            {t("Original file")}
          </button>
        )}
      </div>
      {problem && (
        <p class="wrong small" role="alert">
          {problem}
        </p>
      )}
      <Problem error={error} onRetry={retry} />
      {facts && ready && ready.facts.length > 0 && (
        <ul class="fact-list">
          {ready.facts.map((fact) => (
            <li key={fact.key}>
              <button class="plain" onClick={() => setPlace({ ...place, start: fact.start, end: fact.end, quote: fact.text })}>
                {fact.relation && <b>{fact.relation} </b>}
                {dropMarks(fact.text)}
              </button>
            </li>
          ))}
        </ul>
      )}
      {ready ? (
        <Body reading={ready} workspace={workspace} page={page} here={place} also={also} />
      ) : (
        !error && <div class="loading" role="status" aria-label={t("Loading")} />
      )}
    </Drawer>
  );
}

export function OpenDocument({ name, start = 0, end = 0, onClose }: { name: string; start?: number; end?: number; onClose: () => void }) {
  const place = useMemo(() => ({ doc: name, chunk: "", start, end: Math.max(start, end), quote: "" }), [name, start, end]);
  return <Reader place={place} onClose={onClose} />;
}
