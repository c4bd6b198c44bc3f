// Follows a job by its events, and goes on following after a lost connection.
import { useEffect, useState } from "preact/hooks";
import { ApiError, at, get, stream, type Job } from "./api";
import { t } from "./i18n";

export interface Progress {
  stage: string;
  done: number;
  total: number;
  /** Seconds until the end of this stage; null while they cannot be told. */
  left: number | null;
}
const ENDED = ["done", "failed", "cancelled"];
export const hasEnded = (job: Job): boolean => ENDED.includes(job.state);

/** Estimates the time left in a stage from its own pace. */
export class Pace {
  private readonly began = new Map<string, { at: number; first: number }>();
  private shown: Progress | null = null;
  /** The progress to show: stages run beside each other, and passages say more than documents. */
  measure(stage: string, done: number, total: number, now: number): Progress {
    const began = this.began.get(stage) ?? { at: now, first: done };
    this.began.set(stage, began);
    const made = done - began.first;
    const left = made > 0 && total > done ? ((now - began.at) / 1000 / made) * (total - done) : null;
    const { shown } = this;
    const inPassages = shown?.stage === "passages" && shown.done < shown.total;
    if (!(inPassages && (stage === "extract" || !total))) this.shown = { stage, done, total, left };
    return this.shown!;
  }
}

export function useJob(workspace: string, id: string | null): [Job | null, Progress | null] {
  const [job, setJob] = useState<Job | null>(null);
  const [progress, setProgress] = useState<Progress | null>(null);
  useEffect(() => {
    setJob(null);
    setProgress(null);
    if (!id) return;
    const control = new AbortController();
    const pace = new Pace();
    let last = "0";
    const follow = async () => {
      while (!control.signal.aborted) {
        try {
          const now = await get<Job>(at(workspace, `/jobs/${id}`), control.signal);
          setJob(now);
          if (hasEnded(now)) return;
          await stream("GET", at(workspace, `/jobs/${id}/events`, { after: last }), undefined, control.signal, (event) => {
            last = event.id || last;
            const data = JSON.parse(event.data);
            if (event.name === "progress") setProgress(pace.measure(data.stage, data.done, data.total, performance.now()));
            else if (!ENDED.includes(data.state)) setJob((before) => before && { ...before, state: data.state });
            // The end comes with the job itself, which holds the result.
          });
        } catch (error) {
          if (error instanceof DOMException) return;
          if (!(error instanceof ApiError)) throw error;
          if (error.status) return; // gone, or no longer allowed: what was shown stays
        }
        await new Promise((done) => setTimeout(done, 500));
      }
    };
    void follow();
    return () => control.abort();
  }, [workspace, id]);
  return [job, progress];
}

/** Seconds left, in minutes where they are many. */
export const formatLeft = (seconds: number): string =>
  seconds < 100 ? t("about {n} s left", { n: Math.ceil(seconds) }) : t("about {n} min left", { n: Math.ceil(seconds / 60) });
