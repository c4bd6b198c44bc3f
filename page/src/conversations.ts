// The conversations of this browser: each with its questions and answers, the newest first.
import type { Turn } from "./ask-model";
import { Source, useSource } from "./source";

export interface Conversation {
  id: string;
  /** As the user renamed it; else its first question is its name. */
  name: string;
  workspace: string;
  changed: number;
  turns: Turn[];
}
const KEPT = "clew.conversations";
const MOST = 100;

/** Answers read with a key that the browser is not to remember go with the tab, as the key does. */
const storage = (): Storage => (sessionStorage.getItem("clew.key") && !localStorage.getItem("clew.key") ? sessionStorage : localStorage);

/** What is stored; other tabs store theirs there, too. */
function read(): Conversation[] {
  try {
    return JSON.parse(storage().getItem(KEPT) ?? "[]") as Conversation[];
  } catch {
    return []; // storage is forbidden, or what it holds was cut
  }
}
/** Stores as many as there is room for: where the browser holds no more, the oldest go. */
function write(all: Conversation[]): void {
  const kept = [...all].sort((a, b) => b.changed - a.changed).slice(0, MOST);
  list.value = kept;
  for (let most = kept.length; ; most = Math.floor(most / 2)) {
    try {
      return most ? storage().setItem(KEPT, JSON.stringify(kept.slice(0, most))) : storage().removeItem(KEPT);
    } catch {
      if (!most) return; // storage is forbidden: the list lasts as long as the page
    }
  }
}

const list = new Source<Conversation[]>([]);
export const useConversations = (): Conversation[] => useSource(list);
export const nameOf = (one: Conversation): string => one.name || one.turns[0]!.question;

/** Takes up what is stored, and what other tabs store from now on. */
export function loadConversations(): Conversation[] {
  window.addEventListener("storage", ({ key }) => {
    if (key === KEPT) list.value = read();
  });
  return (list.value = read());
}
/** Stores the turns of a conversation; one that a user deleted meanwhile in another tab comes back. */
export function saveConversation(id: string, turns: Turn[], changed = Date.now()): void {
  const all = read();
  const before = all.find((one) => one.id === id);
  const own = { id, name: before?.name ?? "", workspace: turns[0]!.workspace, changed, turns: turns.map(pack) };
  write([own, ...all.filter((one) => one.id !== id)]);
}
/** The steps of a finished answer stand in its trace. */
const pack = (turn: Turn): Turn => (turn.answer?.trace?.length ? { ...turn, steps: [] } : turn);

export const renameConversation = (id: string, name: string): void =>
  write(read().map((one) => (one.id === id ? { ...one, name: name.trim() } : one)));
export const deleteConversation = (id: string): void => write(read().filter((one) => one.id !== id));
export function deleteAll(): void {
  for (const one of [localStorage, sessionStorage]) one.removeItem(KEPT);
  list.value = [];
}
