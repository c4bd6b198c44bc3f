// Documents: upload, find, read, delete.
import { useEffect, useRef, useState } from "preact/hooks";
import { at, call, get, upload } from "../api";
import { t, tn, translateMessage } from "../i18n";
import { OpenDocument } from "../reader";
import { current, go, mayWrite, refreshStatus, toast, useRoute, useShared } from "../state";
import { describe, Empty, formatBytes, Icon, Problem, takeFocus, Words } from "../ui";
import { Build } from "./build";

export interface Row {
  id: string;
  name: string;
  title?: string;
  arrived?: number | null;
  state: string;
  reason?: string;
  /** Of the uploaded file, and of the text that was read. */
  bytes?: number;
  characters?: number;
  labels: string[];
  failures?: { reason: string; passages: number }[];
}
const countFailed = (row: Row): number => (row.failures ?? []).reduce((sum, one) => sum + one.passages, 0);
export interface Page {
  documents: Row[];
  next: string | null;
}
interface Sending {
  name: string;
  state: "waiting" | "sending" | "failed";
  reason: string;
}

/** All files that no build has added: they may stand behind any number of documents. */
async function listWaiting(workspace: string): Promise<Row[]> {
  const found: Row[] = [];
  for (let after: string | null = ""; after !== null; ) {
    const page: Page = await get<Page>(at(workspace, "/documents", { waiting: true, after, limit: 500 }));
    found.push(...page.documents);
    after = page.next;
  }
  return found;
}
const MOST_WAITING = 200; // are listed; the build takes them all
type State = "" | "added" | "uploaded" | "failed";
const STATES: Record<string, string> = { added: "ready", uploaded: "waits for a build", failed: "failed" };
/** Whether a row has this state; of a document that was built some passages may have failed. */
export const hasState = (row: Row, state: State): boolean =>
  !state || row.state === state || (state === "failed" && countFailed(row) > 0);
/** What is to be done first: files that failed, files that wait, then the documents. */
export function arrangeRows(waiting: Row[], rows: Row[]): Row[] {
  const failed = waiting.filter((row) => row.state === "failed");
  const others = waiting.filter((row) => row.state !== "failed");
  return [...[...failed, ...others].slice(0, MOST_WAITING), ...rows.filter((row) => row.state === "added")];
}

export function Documents() {
  const { workspace, status } = useShared();
  const { query } = useRoute();
  const [rows, setRows] = useState<Row[]>([]);
  const [unbuilt, setUnbuilt] = useState<Row[]>([]);
  const [next, setNext] = useState<string | null>(null);
  const [loaded, setLoaded] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [words, setWords] = useState("");
  const [order, setOrder] = useState("name");
  const [state, setState] = useState<State>("");
  const asked = useRef("");
  const load = async (after = "") => {
    const failed = state === "failed";
    const path = at(workspace, "/documents", { after, limit: 100, query: words, order, ...(failed ? { failed } : {}) });
    asked.current = path;
    try {
      const page = await get<Page>(path);
      if (asked.current !== path) return; // something else is asked for by now
      if (!after) setUnbuilt(await listWaiting(workspace));
      setRows((before) => (after ? [...before, ...page.documents] : page.documents));
      setNext(page.next);
      setError(null);
    } catch (problem) {
      setError(problem);
    }
    setLoaded(true);
  };
  useEffect(() => {
    const timer = setTimeout(() => void load(), loaded ? 200 : 0); // until one stops typing
    return () => clearTimeout(timer);
  }, [workspace, words, order, state]);
  const [retried, setRetried] = useState("");
  const waiting = unbuilt.filter((row) => row.state === "uploaded").map((row) => row.name);
  const matching = unbuilt.filter((row) => row.name.toLowerCase().includes(words.toLowerCase()));
  const listed = arrangeRows(matching, rows).filter((row) => hasState(row, state));
  const changed = async () => {
    await load();
    await refreshStatus();
  };
  const list = useRef<HTMLUListElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  /** After a row is gone its successor has the focus, else the heading. */
  const leave = async (place: number) => {
    await changed();
    await new Promise(requestAnimationFrame); // until the rows are drawn
    const left = list.current?.children;
    const next = left?.[Math.min(place, left.length - 1)]?.querySelector<HTMLElement>("a, button");
    (next ?? heading.current)?.focus();
  };
  const name = query.get("name");
  return (
    <div class="page">
      <div class="row spread">
        <h1 ref={heading} tabIndex={-1}>{t("Documents")}</h1>
        {status && <span class="soft small">{t("Size on disk")}: {formatBytes(status.bytes)}</span>}
      </div>
      {mayWrite() && <DropZone onDone={() => void changed()} />}
      {mayWrite() && loaded && <Build waiting={waiting} retried={retried} onDone={() => (setRetried(""), void changed())} />}
      <Problem error={error} onRetry={() => void load()} />
      {(status?.documents || unbuilt.length) ? (
        <div class="row filters">
          <input type="search" aria-label={t("Find a document")} placeholder={t("Find a document …")} value={words} onInput={(e) => setWords(e.currentTarget.value)} />
          <select aria-label={t("Order")} value={order} onChange={(e) => setOrder(e.currentTarget.value)}>
            <option value="name">{t("by name")}</option>
            <option value="newest">{t("newest first")}</option>
            <option value="oldest">{t("oldest first")}</option>
          </select>
          <select aria-label={t("Status")} value={state} onChange={(e) => setState(e.currentTarget.value as State)}>
            <option value="">{t("every status")}</option>
            {Object.entries(STATES).map(([value, name]) => (
              <option key={value} value={value}>
                {t(name)}
              </option>
            ))}
          </select>
        </div>
      ) : null}
      {loaded && !error && listed.length === 0 && <Empty title={t(words || state ? "No document is like that" : "No documents yet")} />}
      {unbuilt.length > MOST_WAITING && (
        <p class="small soft">{t("{n} of {all} files that are not built are listed.", { n: MOST_WAITING, all: unbuilt.length.toLocaleString() })}</p>
      )}
      {listed.length > 0 && (
        <ul class="card list" aria-label={t("Documents")} ref={list}>
          {listed.map((row, n) => (
            <RowView key={row.name} row={row} onGone={() => void leave(n)} onRetry={() => setRetried(row.name)} />
          ))}
        </ul>
      )}
      {next !== null && (
        <button class="quiet" onClick={() => void load(next)}>
          {t("Show more")}
        </button>
      )}
      {name && <OpenDocument name={name} start={Number(query.get("start"))} end={Number(query.get("end"))} onClose={() => go("documents")} />}
    </div>
  );
}

const formatDate = (seconds: number, timeStyle?: "medium"): string =>
  new Intl.DateTimeFormat(current().language, { dateStyle: "medium", timeStyle }).format(seconds * 1000);

function RowView({ row, onGone, onRetry }: { row: Row; onGone: () => void; onRetry: () => void }) {
  const { workspace } = useShared();
  const kept = useRef(false);
  const [sure, setSure] = useState(false);
  const [busy, setBusy] = useState(false);
  const remove = async () => {
    setBusy(true);
    try {
      await call("DELETE", at(workspace, `/documents/${row.id}`));
      toast(t("Removed: {name}", { name: row.name }));
      onGone();
    } catch (error) {
      toast(describe(error));
    }
    setBusy(false);
    setSure(false);
  };
  return (
    <li>
      <span class="name">
        {row.state === "added" ? (
          <>
            <a href={`#/documents?name=${encodeURIComponent(row.name)}`}>{row.title || row.name}</a>
            {row.title && row.title !== row.name && <span class="small soft path">{row.name}</span>}
          </>
        ) : (
          <>
            {row.name}
            {row.reason && <span class="small wrong"> — <Words text={translateMessage(row.reason)} /></span>}
          </>
        )}
      </span>
      {row.labels.map((label) => (
        <span key={label} class="tag">
          {label}
        </span>
      ))}
      <span class="small soft size">{row.bytes !== undefined ? formatBytes(row.bytes) : row.characters !== undefined && tn(row.characters, "1 character", "{n} characters")}</span>
      <span class="small soft date">{row.arrived && <time dateTime={new Date(row.arrived * 1000).toISOString()} title={formatDate(row.arrived, "medium")}>{formatDate(row.arrived)}</time>}</span>
      {(row.state !== "added" || !countFailed(row)) && <span class={`state ${row.state}`}>{t(STATES[row.state] ?? row.state)}</span>}
      {countFailed(row) > 0 && (
        <span class="state failed" title={row.failures!.map((one) => translateMessage(one.reason)).join("\n")}>
          {t("failed passages: {n}", { n: countFailed(row) })}
        </span>
      )}
      {row.state === "failed" && mayWrite() && (
        <button class="quiet" aria-label={t("Try again: {name}", { name: row.name })} onClick={onRetry}>
          <Icon name="again" /> {t("Try again")}
        </button>
      )}
      {mayWrite() &&
        (sure ? (
          <span class="row">
            <button class="quiet danger" disabled={busy} onClick={() => void remove()}>
              {t("Delete for good")}
            </button>
            <button class="quiet" ref={takeFocus} onClick={() => (setSure(false), (kept.current = true))}>
              {t("Keep")}
            </button>
          </span>
        ) : (
          <button class="round quiet danger" ref={kept.current ? takeFocus : undefined} aria-label={t("Delete {name}", { name: row.name })} onClick={() => setSure(true)}>
            <Icon name="trash" />
          </button>
        ))}
    </li>
  );
}

/** Every format that is read by the end of a file's name; what has another one is read by its content. */
const FORMATS: [string, string][] = [
  ["PDF", ".pdf"],
  ["Word", ".docx"],
  ["PowerPoint", ".pptx"],
  ["Excel", ".xlsx"],
  ["CSV", ".csv .tsv"],
  ["JSON", ".json .jsonl .ndjson"],
  ["Parquet", ".parquet"],
  ["SQLite", ".sqlite .sqlite3 .db"],
  ["Markdown", ".md .markdown"],
  ["text", ".txt .text .rst"],
  ["web pages", ".html .htm .xhtml"],
  ["EPUB", ".epub"],
  ["mail", ".eml .mbox"],
  ["notebooks", ".ipynb"],
  ["LaTeX", ".tex .ltx"],
  ["manual pages", ".man .1"],
  ["source code", ".py .js …"],
];

function DropZone({ onDone }: { onDone: () => void }) {
  const { workspace } = useShared();
  const [over, setOver] = useState(false);
  const [sending, setSending] = useState<Sending[]>([]);
  const field = useRef<HTMLInputElement>(null);
  const send = async (files: File[]) => {
    setSending(files.map((file) => ({ name: file.name, state: "waiting", reason: "" })));
    const set = (n: number, some: Partial<Sending>) =>
      setSending((all) => all.map((one, at) => (at === n ? { ...one, ...some } : one)));
    const failed = new Set<number>();
    for (const [n, file] of files.entries()) {
      set(n, { state: "sending" });
      try {
        await upload(workspace, file, file.webkitRelativePath || file.name);
      } catch (error) {
        failed.add(n);
        set(n, { state: "failed", reason: describe(error) });
      }
    }
    setSending((all) => all.filter((_, n) => failed.has(n)));
    onDone();
  };
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    void send([...(event.dataTransfer?.files ?? [])]);
  };
  return (
    <div
      class={over ? "drop over" : "drop"}
      onDragOver={(e) => (e.preventDefault(), setOver(true))}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <Icon name="upload" />
      <p>{t("Drop files here")}</p>
      <p class="small soft formats">
        {FORMATS.map(([kind, ends], n) => (
          <span key={kind} title={ends}>
            {t(kind)}
            {n < FORMATS.length - 1 && "\u00a0· "}
          </span>
        ))}
      </p>
      <button class="quiet" onClick={() => field.current?.click()}>
        {t("Choose files")}
      </button>
      <input
        ref={field}
        type="file"
        multiple
        hidden
        aria-label={t("Choose files")}
        onChange={(e) => {
          void send([...(e.currentTarget.files ?? [])]);
          e.currentTarget.value = "";
        }}
      />
      {sending.length > 0 && (
        <ul class="bars small" role="status">
          {sending.map((one, n) => (
            <li key={n}>
              <span>{one.name}</span>
              <span class={one.state === "failed" ? "wrong" : "soft"}>{one.reason || t(one.state)}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
