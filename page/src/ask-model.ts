// The conversation: questions, their events as they arrive, and answers. Kept while views change.
import { ApiError, at, stream, type Answer, type ServerEvent, type Step, type TraceStep } from "./api";
import { deleteAll, deleteConversation, loadConversations, saveConversation, type Conversation } from "./conversations";
import { Source, useSource } from "./source";
import { current } from "./state";
import { describe } from "./ui";

export interface ShownStep extends Step {
  open: boolean;
}
export interface Turn {
  id: number;
  workspace: string;
  question: string;
  recipe: string;
  mode: "open" | "reject";
  steps: ShownStep[];
  text: string;
  answer: Answer | null;
  state: "running" | "done" | "stopped" | "failed" | "lost" | "shared";
  problem: string;
  started: number;
}

const turns = new Source<Turn[]>([]);
/** An answer that came with a link: shown in place of the conversation, which stays as it is. */
const shared = new Source<Turn | null>(null);
/** The conversation that is shown; a new one is kept from its first answer on. */
const open = new Source("");
let nextId = Date.now(); // no other than those that were kept
const running = new Map<number, AbortController>();

export const useTurns = (): Turn[] => useSource(turns);
export const useSharedTurn = (): Turn | null => useSource(shared);
export const useOpenId = (): string => useSource(open);
function update(id: number, edit: (turn: Turn) => Turn): void {
  turns.value = turns.value.map((turn) => (turn.id === id ? edit(turn) : turn));
}
/** Keeps the conversation in this browser; an answer that is not complete is not waited for. */
function keep(state: Turn["state"]): void {
  if (!turns.value.length) return;
  open.value ||= String(nextId++);
  saveConversation(open.value, turns.value.map((one) => (one.state === "running" ? { ...one, state, steps: one.steps.map(close) } : one)));
}
function show(id: string, shown: Turn[]): void {
  if (running.size) keep("stopped");
  running.forEach((one) => one.abort());
  running.clear();
  open.value = id;
  turns.value = shown;
  closeShared();
}
export const startConversation = (): void => show("", []);
export const openConversation = (one: Conversation): void =>
  show(one.id, one.turns.map((turn) => (turn.answer && !turn.steps.length ? { ...turn, steps: listTrace(turn.answer) ?? [] } : turn)));
/** Deletes a conversation; where it is the one that is shown, a new one begins. */
export function dropConversation(id: string): void {
  if (open.value === id) startConversation();
  deleteConversation(id);
}
/** Deletes all that was asked and answered. */
export function forgetAnswers(): void {
  startConversation();
  deleteAll();
}
const OPEN = "clew.open";
/** Keeps which conversation this tab shows, so that loading the page again shows it. */
export function keepTurns(): void {
  if (running.size) keep("lost");
  sessionStorage.setItem(OPEN, open.value);
}
export function restoreTurns(): void {
  const found = loadConversations().find((one) => one.id === sessionStorage.getItem(OPEN));
  if (found) openConversation(found);
}
export function showShared(answer: Answer, workspace: string): void {
  const { question, recipe } = answer;
  const shown = { question, recipe, workspace, answer, text: answer.answer, mode: "open" as const };
  shared.value = { id: nextId++, steps: [], state: "shared", problem: "", started: 0, ...shown };
}
export function closeShared(): void {
  if (shared.value) shared.value = null;
}
/** Takes the answer of a link into the conversation, to go on from it. */
function adoptShared(): void {
  if (!shared.value) return;
  turns.value = [...turns.value, shared.value];
  shared.value = null;
  location.hash = "#/ask";
}

/** Applies one event of the stream to a turn. */
export function applyEvent(turn: Turn, event: ServerEvent): Turn {
  const data = JSON.parse(event.data);
  switch (event.name) {
    case "step-started":
      return { ...turn, steps: insertStep(turn.steps, { ...data, open: true }) };
    case "step": {
      // Sub-questions are read at the same time, so steps of one name are told apart by their input.
      const same = (one: ShownStep) => one.open && one.step === data.step && one.depth === data.depth;
      const exact = turn.steps.findIndex((one) => same(one) && one.input === data.input);
      const place = exact < 0 ? turn.steps.findIndex(same) : exact;
      const steps = [...turn.steps];
      if (place < 0) steps.push({ ...data, open: false });
      else steps[place] = { ...steps[place]!, ...data, open: false };
      return { ...turn, steps };
    }
    case "token":
      // What was written before a restart could not be used.
      return { ...turn, text: data.restart ? "" : turn.text + data.text };
    case "answer":
      return { ...turn, answer: data, text: data.answer, state: "done", steps: listTrace(data) ?? turn.steps.map(close) };
    case "error":
      return { ...turn, state: "failed", problem: data.detail, steps: turn.steps.map(close) };
    default:
      return turn;
  }
}
/** Puts a step under the open one with the same question, else at the end. */
function insertStep(steps: ShownStep[], step: ShownStep): ShownStep[] {
  const above = (one: ShownStep) => one.open && one.depth === step.depth - 1 && one.input === step.input;
  const parent = steps.findIndex(above);
  if (parent < 0) return [...steps, step];
  let end = parent + 1;
  while (end < steps.length && steps[end]!.depth >= step.depth) end++;
  return [...steps.slice(0, end), step, ...steps.slice(end)];
}
/** The steps of the finished answer, which hold also what was not told on the way. */
function listTrace(answer: Answer): ShownStep[] | null {
  const list = (trace: TraceStep[], depth: number): ShownStep[] =>
    trace.flatMap(({ steps = [], ...step }) => [{ ...step, depth, open: false }, ...list(steps, depth + 1)]);
  return answer.trace?.length ? list(answer.trace, 0) : null;
}
const close = (step: ShownStep): ShownStep => ({ ...step, open: false });

/** Asks; with `replaces` the turn of that id is asked again in its place. */
export async function ask(question: string, recipe: string, mode: Turn["mode"], replaces?: number): Promise<void> {
  adoptShared();
  const id = nextId++;
  const { workspace } = current();
  const known = turns.value;
  const before = replaces === undefined ? known : known.slice(0, known.findIndex((one) => one.id === replaces));
  // What came with a link has nothing to do with what was asked before it.
  const history = before
    .slice(Math.max(0, before.map((one) => one.state).lastIndexOf("shared")))
    .filter((one) => one.answer && one.workspace === workspace)
    .slice(-10)
    .map((one) => ({ question: one.question, answer: one.answer!.answer.replace(/\[\d+\]/g, "") }));
  const blank = { steps: [], text: "", answer: null, state: "running" as const, problem: "" };
  const turn: Turn = { id, workspace, question, recipe, mode, started: performance.now(), ...blank };
  turns.value = replaces === undefined ? [...known, turn] : known.map((one) => (one.id === replaces ? turn : one));
  const control = new AbortController();
  running.set(id, control);
  const body = { question, recipe: recipe || null, mode, history, stream: true };
  try {
    await stream("POST", at(workspace, "/ask"), body, control.signal, (event) =>
      update(id, (one) => applyEvent(one, event)),
    );
    update(id, (one) => (one.state === "running" ? { ...one, state: "lost", steps: one.steps.map(close) } : one));
  } catch (error) {
    if (error instanceof DOMException) update(id, (one) => ({ ...one, state: "stopped", steps: one.steps.map(close) }));
    else if (error instanceof ApiError) {
      const state = error.status ? "failed" : "lost";
      update(id, (one) => ({ ...one, state, problem: describe(error), steps: one.steps.map(close) }));
    } else throw error;
  } finally {
    // Another conversation may be shown by now; this one was kept then.
    if (running.delete(id)) keep("lost");
  }
}
export const stop = (id: number): void => running.get(id)?.abort();
