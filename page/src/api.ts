// Calls of the server's REST API. The page is served at its root, so addresses are relative.

export interface Usage {
  calls: number;
  prompt_tokens: number;
  completion_tokens: number;
  cached_calls: number;
  money: number;
}
export interface Citation {
  doc: string;
  chunk: string;
  start: number;
  end: number;
  quote: string;
  page?: number | null;
  /** The sections that hold the quote, or the row of a table. */
  heading?: string;
}
export interface Passage {
  id: string;
  doc: string;
  title: string;
  score: number;
  text: string;
  start: number;
  end: number;
  page: number | null;
}
export interface Fact {
  id: string;
  text: string;
  relation: string;
  entities: string[];
  doc: string;
  start: number;
  end: number;
  quote: string;
}
export interface Route {
  entities: string[];
  facts: string[];
  score: number;
  steps?: Fact[];
}
/** A path that a retrieval followed; the facts stand between the entities, or one joins them all. */
export interface Walked {
  entities: string[];
  facts: { text: string; doc: string; start: number; end: number; quote: string }[];
}
export interface Step {
  step: string;
  input?: string;
  output?: string;
  seconds?: number;
  usage?: Usage;
  docs?: string[];
  /** Told while the agent works only. */
  walked?: Walked[];
  depth: number;
}
/** A step in the trace of an answer, with those inside it. */
export interface TraceStep extends Omit<Step, "depth"> {
  steps?: TraceStep[];
}
export interface Answer {
  question: string;
  recipe: string;
  seconds: number;
  usage: Usage;
  answer: string;
  candidate: string;
  verdict: "answered" | "refused";
  note: string;
  missing: string;
  complete: boolean;
  confidence?: number | null;
  citations: Citation[];
  chunks: Passage[];
  facts: Fact[];
  paths: Route[];
  entities: { name: string; type: string }[];
  trace?: TraceStep[];
}
export interface Recipe {
  name: string;
  kind: string;
  about: string;
  needs: string;
  source: string;
}
export interface Status {
  documents: number;
  chunks: number;
  entities: number;
  facts: number;
  communities: number;
  trees: Record<string, unknown>;
  embedder: string;
  generation: number;
  failed: number;
  pending: number;
  bytes: number;
  spent: number;
}
export interface Job {
  id: string;
  kind: string;
  state: "queued" | "running" | "done" | "failed" | "cancelled";
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- each kind of job has its own
  result: any;
  error: string;
  created: number;
  started: number | null;
  finished: number | null;
}
export interface Entity {
  key: number;
  id: string;
  name: string;
  type: string;
  description: string;
  aliases: string[];
  chunks: number;
}

/** An error as the server words it; status 0 means that it did not answer. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    detail: string,
  ) {
    super(detail);
  }
}

const GATEWAY = [502, 503, 504];
let token = "";
export const setToken = (value: string): void => {
  token = value;
};
const headers = (more: Record<string, string> = {}): Record<string, string> =>
  token ? { Authorization: `Bearer ${token}`, ...more } : more;

async function send(path: string, init: RequestInit): Promise<Response> {
  let reply: Response;
  try {
    reply = await fetch(path, { ...init, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "");
  }
  if (reply.ok) return reply;
  let detail = "";
  try {
    detail = (await reply.json()).detail ?? "";
  } catch {
    // Not JSON: a proxy says that it does not reach the server.
    if (GATEWAY.includes(reply.status)) throw new ApiError(0, "");
  }
  throw new ApiError(reply.status, typeof detail === "string" ? detail : JSON.stringify(detail));
}

export const call = async <T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> => {
  const json: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/json" };
  const sent = body === undefined ? undefined : JSON.stringify(body);
  return (await send(path, { method, body: sent, headers: headers(json), signal })).json();
};
export const get = <T>(path: string, signal?: AbortSignal): Promise<T> => call<T>("GET", path, undefined, signal);
export const post = <T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> =>
  call<T>("POST", path, body, signal);

/** The address of something in a workspace; parameters without a value are left out. */
export function at(workspace: string, path = "", query: Record<string, string | number | boolean> = {}): string {
  const kept = Object.entries(query).filter(([, value]) => value !== "");
  const tail = kept.length ? `?${new URLSearchParams(kept.map(([k, v]) => [k, String(v)]))}` : "";
  return `workspaces/${encodeURIComponent(workspace)}${path}${tail}`;
}

export const upload = async (workspace: string, file: File, name: string): Promise<void> => {
  const type = { "Content-Type": "application/octet-stream" };
  await send(at(workspace, "/documents", { name }), { method: "POST", body: file, headers: headers(type) });
};

export const download = async (path: string): Promise<Blob> =>
  (await send(path, { method: "GET", headers: headers() })).blob();

export interface ServerEvent {
  name: string;
  id: string;
  data: string;
}

/** Splits a stream of server-sent events; what is incomplete waits for the next piece. */
export class EventParser {
  private rest = "";
  push(text: string): ServerEvent[] {
    const blocks = (this.rest + text).split("\n\n");
    this.rest = blocks.pop() ?? "";
    return blocks.map(readEvent).filter((one) => one.data !== "");
  }
}
function readEvent(block: string): ServerEvent {
  const event: ServerEvent = { name: "", id: "", data: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const [field, ...value] = line.split(": ");
    if (field === "event") event.name = value.join(": ");
    else if (field === "id") event.id = value.join(": ");
    else if (field === "data") data.push(value.join(": "));
  }
  return { ...event, data: data.join("\n") };
}

/** Calls `on` with every event; a connection that is lost is an ApiError with status 0. */
export async function stream(
  method: string,
  path: string,
  body: unknown,
  signal: AbortSignal,
  on: (event: ServerEvent) => void,
): Promise<void> {
  const json: Record<string, string> = body === undefined ? {} : { "Content-Type": "application/json" };
  const sent = body === undefined ? undefined : JSON.stringify(body);
  const reply = await send(path, { method, body: sent, headers: headers(json), signal });
  const reader = reply.body!.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser();
  for (;;) {
    let part: ReadableStreamReadResult<string>;
    try {
      part = await reader.read();
    } catch (error) {
      if (error instanceof DOMException && error.name === "AbortError") throw error;
      throw new ApiError(0, "");
    }
    if (part.done) return;
    parser.push(part.value).forEach(on);
  }
}
