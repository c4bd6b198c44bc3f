// From files that wait to documents: what a build would cost, the build as it runs, what failed.
import { useEffect, useState } from "preact/hooks";
import { at, get, post, type Job } from "../api";
import { t, tn, translateMessage } from "../i18n";
import { formatLeft, hasEnded, useJob, type Progress } from "../jobs";
import { toast, useShared } from "../state";
import { describe, formatCost, formatMoney, Icon, Problem, useLoad, Words } from "../ui";
import type { Page } from "./documents";

/** From waiting uploads to a build: estimate, start, follow, cancel, report. */
export function Build({ waiting, retried, onDone }: { waiting: string[]; retried: string; onDone: () => void }) {
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
