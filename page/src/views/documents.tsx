// Documents: upload, what a build would cost, the build as it runs, what failed, delete.
import { useEffect, useRef, useState } from "preact/hooks";
import { at, call, get, post, upload, type Job } from "../api";
import { t, tn, translateMessage } from "../i18n";
import { formatLeft, hasEnded, useJob, type Progress } from "../jobs";
import { OpenDocument } from "../reader";
import { go, mayWrite, refreshStatus, toast, useRoute, useShared } from "../state";
import { describe, Empty, formatBytes, formatCost, formatMoney, Icon, Problem, takeFocus, useLoad, Words } from "../ui";

interface Row {
  id: string;
  name: string;
  title?: string;
  arrived?: number | null;
  state: string;
  reason?: string;
  bytes?: number;
  labels: string[];
  failures?: { reason: string; passages: number }[];
}
const countFailed = (row: Row): number => (row.failures ?? []).reduce((sum, one) => sum + one.passages, 0);
interface Page {
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
  const load = async (after = "") => {
    try {
      const page = await get<Page>(at(workspace, "/documents", { after, limit: 100 }));
      if (!after) setUnbuilt(await listWaiting(workspace));
      setRows((before) => (after ? [...before, ...page.documents] : page.documents));
      setNext(page.next);
      setError(null);
    } catch (problem) {
      setError(problem);
    }
    setLoaded(true);
  };
  useEffect(() => void load(), [workspace]);
  const [retried, setRetried] = useState("");
  const waiting = unbuilt.filter((row) => row.state === "uploaded").map((row) => row.name);
  const listed = arrangeRows(unbuilt, rows);
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
        {status && <span class="soft small">{formatBytes(status.bytes)}</span>}
      </div>
      {mayWrite() && <DropZone onDone={() => void changed()} />}
      {mayWrite() && loaded && <Build waiting={waiting} retried={retried} onDone={() => (setRetried(""), void changed())} />}
      <Problem error={error} onRetry={() => void load()} />
      {loaded && !error && listed.length === 0 && <Empty title={t("No documents yet")} />}
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
            {row.title && row.title !== row.name && <span class="small soft path"> {row.name}</span>}
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
      {row.bytes !== undefined && <span class="small soft">{formatBytes(row.bytes)}</span>}
      {row.state !== "added" && <span class={`state ${row.state}`}>{t(row.state)}</span>}
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
      <p>{t("Drop files here: text, Markdown, HTML, PDF, DOCX, JSON lines or tables.")}</p>
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

/** From waiting uploads to a build: estimate, start, follow, cancel, report. */
function Build({ waiting, retried, onDone }: { waiting: string[]; retried: string; onDone: () => void }) {
  const { workspace, status } = useShared();
  const [id, setId] = useState<string | null>(null);
  const [job, progress] = useJob(workspace, id);
  const [error, setError] = useState<unknown>(null);
  const planned = usePlanned(job);
  const begin = async (body: unknown) => {
    try {
      setError(null);
      setId((await post<Job>(at(workspace, "/builds"), body)).id);
    } catch (problem) {
      setError(problem);
    }
  };
  useEffect(() => {
    void get<{ jobs: Job[] }>(at(workspace, "/jobs", { limit: 20 })).then(({ jobs }) => {
      const running = jobs.find((one) => !hasEnded(one) && ["build", "plan"].includes(one.kind));
      if (running) setId(running.id);
      else if (waiting.length) void begin({ dry_run: true });
    }, setError);
  }, [workspace, waiting.join("\n")]);
  useEffect(() => {
    if (retried) void begin({ retry: true, names: [retried] });
  }, [retried]);
  useEffect(() => {
    if (job && hasEnded(job) && job.kind === "build") onDone();
  }, [job?.state]);
  const running = job && !hasEnded(job);
  if (!id && !waiting.length && !status?.failed) return <Problem error={error} />;
  return (
    <section class="card plan" aria-label={t("Build")}>
      <Problem error={error} />
      {waiting.length > 0 && !running && <h2>{tn(waiting.length, "1 file waits to be built", "{n} files wait to be built")}</h2>}
      {job?.kind === "plan" && job.state === "done" && waiting.length > 0 && <Estimate plan={job.result} />}
      {running && <Running job={job} progress={progress} />}
      {job && job.kind === "build" && hasEnded(job) && <Outcome job={job} planned={planned} />}
      {job?.kind === "plan" && job.state === "failed" && <p class="wrong"><Words text={translateMessage(job.error)} /></p>}
      {!running && <Failures />}
      {!running && (
        <div class="row">
          {waiting.length > 0 && (job || error) && (
            <button class="main" onClick={() => void begin({})}>
              {t("Build now")}
            </button>
          )}
          <RetryFailed onRetry={() => void begin({ retry: true })} />
        </div>
      )}
    </section>
  );
}

interface Plan {
  chunks?: number;
  calls?: number;
  prompt_tokens?: number;
  completion_tokens?: number;
  money?: number | null;
  seconds?: number;
  skipped?: Skipped[];
  [name: string]: unknown;
}
interface Skipped {
  name: string;
  reason: string;
}
/** The files that are not read, each with the reason. */
function SkippedList({ skipped }: { skipped: Skipped[] }) {
  return (
    <>
      {skipped.map((one, n) => (
        <p key={n} class="small wrong">
          {one.name}: <Words text={translateMessage(one.reason)} />
        </p>
      ))}
    </>
  );
}
function Estimate({ plan }: { plan: Plan }) {
  const tokens = (plan.prompt_tokens ?? 0) + (plan.completion_tokens ?? 0);
  const shown: [string, string][] = [
    [t("Passages"), (plan.chunks ?? 0).toLocaleString()],
    [t("Model calls"), (plan.calls ?? 0).toLocaleString()],
    [t("Tokens"), tokens.toLocaleString()],
    [t("Cost"), plan.money ? formatMoney(plan.money) : plan.calls ? t("price unknown") : t("free")],
  ];
  return (
    <>
      <dl aria-label={t("Estimate")}>
        {shown.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {Boolean(plan.calls) && <p class="small soft">{t("If every reply can be used: those that cannot are asked for again, which costs more.")}</p>}
      {plan.skipped && plan.skipped.length > 0 && (
        <div role="status">
          <p class="small">{t("These cannot be read and are not part of the estimate:")}</p>
          <SkippedList skipped={plan.skipped} />
        </div>
      )}
    </>
  );
}

function Running({ job, progress }: { job: Job; progress: Progress | null }) {
  const { workspace } = useShared();
  const known = progress && progress.total > 0;
  const stage = job.kind === "plan" ? t("Estimating the cost …") : job.state === "queued" ? t("queued") : t(progress?.stage ?? "starting");
  return (
    <>
      <div class="row spread" role="status">
        <b>{stage}</b>
        <span class="small soft">
          {known && `${progress.done.toLocaleString()} / ${progress.total.toLocaleString()}`}
          {progress?.left != null && ` · ${formatLeft(progress.left)}`}
        </span>
      </div>
      <progress aria-label={stage} max={known ? progress.total : undefined} value={known ? progress.done : undefined} />
      {job.kind === "build" && (
        <div>
          <button class="quiet" onClick={() => void post(at(workspace, `/jobs/${job.id}/cancel`), {}).catch((e) => toast(describe(e)))}>
            <Icon name="stop" /> {t("Cancel: what is done stays done")}
          </button>
        </div>
      )}
    </>
  );
}

/** The calls of the last estimate; null where none was made. */
function usePlanned(job: Job | null): number | null {
  const [planned, setPlanned] = useState<number | null>(null);
  useEffect(() => {
    if (job?.kind === "plan" && job.state === "done") setPlanned(job.result.calls ?? null);
  }, [job?.state]);
  return planned;
}

function RetryFailed({ onRetry }: { onRetry: () => void }) {
  const { status } = useShared();
  if (!status?.failed) return null;
  return (
    <button class="quiet" onClick={onRetry}>
      <Icon name="again" /> {tn(status.failed, "Retry 1 passage that failed", "Retry {n} passages that failed")}
    </button>
  );
}

/** The documents of which passages failed, each with the reasons. */
function Failures() {
  const { workspace, status } = useShared();
  const [found, error] = useLoad(async (): Promise<Page> => {
    if (!status?.failed) return { documents: [], next: null };
    return get<Page>(at(workspace, "/documents", { failed: true, limit: 100 }));
  }, [workspace, status?.failed, status?.generation]);
  if (!found?.documents.length) return <Problem error={error} />;
  return (
    <details class="small failures" open={found.documents.length < 4}>
      <summary>{t("Passages of these documents failed")}</summary>
      <ul class="facts">
        {found.documents.map((row) => (
          <li key={row.name}>
            <a href={`#/documents?name=${encodeURIComponent(row.name)}`}>{row.title || row.name}</a>
            {row.failures!.map((one, n) => (
              <span key={n} class="wrong">
                {t("failed passages: {n}", { n: one.passages })}: <Words text={translateMessage(one.reason)} />
              </span>
            ))}
          </li>
        ))}
      </ul>
      {found.next !== null && <p class="soft">{t("and more")}</p>}
    </details>
  );
}

/** What to say of calls that the estimate did not have. */
export function explainCalls(planned: number | null, calls: number): string {
  if (planned === null || calls <= planned * 1.1 + 1) return "";
  return t("The estimate was {n} calls: replies that could not be used were asked for again.", { n: planned.toLocaleString() });
}

function Outcome({ job, planned }: { job: Job; planned: number | null }) {
  const { result } = job;
  if (job.state !== "done") return <p class="wrong"><Words text={job.state === "failed" ? translateMessage(job.error) : t("Cancelled. The files still wait.")} /></p>;
  return (
    <div role="status">
      <p>
        <b>{t("Built: {a} added, {b} updated, {c} unchanged.", { a: result.added, b: result.updated, c: result.unchanged })}</b>{" "}
        <span class="soft small">{formatCost(result.usage)}</span>
      </p>
      {explainCalls(planned, result.usage.calls) && <p class="small soft">{explainCalls(planned, result.usage.calls)}</p>}
      <SkippedList skipped={result.skipped} />
    </div>
  );
}
