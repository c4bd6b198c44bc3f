// What the whole page shares: the key, the workspace, theme, language and the route in the hash.
import { useLayoutEffect, useState } from "preact/hooks";
import { ApiError, at, get, setToken, type Recipe, type Status } from "./api";
import { t } from "./i18n";
import { Source, useSource } from "./source";

export interface Workspace {
  name: string;
  scope: "read" | "write" | "admin";
}
export type Theme = "auto" | "light" | "dark";
export type Language = "en" | "zh";
export interface Shared {
  access: "starting" | "locked" | "open" | "unreachable";
  problem: string;
  workspaces: Workspace[];
  workspace: string;
  recipes: Recipe[];
  status: Status | null;
  theme: Theme;
  language: Language;
  toast: string;
}

const read = (name: string): string => {
  try {
    return localStorage.getItem(`clew.${name}`) ?? "";
  } catch {
    return ""; // storage may be forbidden; then nothing is remembered
  }
};
export const remember = (name: string, value: string): void => {
  try {
    if (value) localStorage.setItem(`clew.${name}`, value);
    else localStorage.removeItem(`clew.${name}`);
  } catch {
    // as above
  }
};

const shared = new Source<Shared>({
  access: "starting",
  problem: "",
  workspaces: [],
  workspace: "",
  recipes: [],
  status: null,
  theme: (read("theme") || "auto") as Theme,
  language: (read("language") || ((globalThis.navigator?.language ?? "").startsWith("zh") ? "zh" : "en")) as Language,
  toast: "",
});
export const current = (): Shared => shared.value;
export function change(some: Partial<Shared>): void {
  shared.value = { ...shared.value, ...some };
}
export const useShared = (): Shared => useSource(shared);

let toastTimer = 0;
export function toast(text: string): void {
  clearTimeout(toastTimer);
  change({ toast: text });
  toastTimer = window.setTimeout(() => change({ toast: "" }), 4000);
}

export function applyLook(): void {
  const root = document.documentElement;
  root.dataset.theme = current().theme;
  root.lang = current().language === "zh" ? "zh-Hans" : "en";
}

/** The workspace of the link, else the one used last, else the first. */
function pickWorkspace(found: Workspace[]): string {
  const wanted = readRoute().query.get("ws") || read("workspace");
  return found.find((one) => one.name === wanted)?.name ?? found[0]?.name ?? "";
}
/** Asks for the workspaces; a refusal shows the form for the key. */
export async function enter(key: string, keep: boolean): Promise<void> {
  // A browser does not send other letters in a header, which would look like a server that is gone.
  if (!/^[\x21-\x7e]*$/.test(key)) return change({ access: "locked", problem: "wrong-key" });
  setToken(key);
  try {
    // Asked first, as a refusal would stand in the browser's console as an error.
    if (!key && (await get<{ needs_key: boolean }>("ready")).needs_key) return change({ access: "locked", problem: "" });
    const found = (await get<{ workspaces: Workspace[] }>("workspaces")).workspaces;
    const recipes = (await get<{ recipes: Recipe[] }>("recipes")).recipes;
    remember("key", keep ? key : "");
    if (key) sessionStorage.setItem("clew.key", key);
    change({ access: "open", problem: "", workspaces: found, recipes, workspace: pickWorkspace(found) });
    await refreshStatus();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 401) change({ access: "locked", problem: key ? "wrong-key" : "" });
    else change({ access: "unreachable", problem: error.message });
  }
}
export const start = (): Promise<void> => enter(sessionStorage.getItem("clew.key") || read("key"), Boolean(read("key")));
export function leave(): void {
  remember("key", "");
  sessionStorage.removeItem("clew.key");
  setToken("");
  change({ access: "locked", problem: "", status: null, workspaces: [] });
}
export async function refreshStatus(): Promise<void> {
  const { workspace } = current();
  if (!workspace) return;
  try {
    const status = await get<Status>(at(workspace));
    if (workspace === current().workspace) change({ status });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // The views say themselves that the server does not answer; the counts keep their last values.
    if (error.status) toast(error.message);
  }
}
export function chooseWorkspace(name: string): void {
  remember("workspace", name);
  const { view, rest, query } = readRoute();
  // The link would lead back to its own workspace when the page is loaded again.
  if (query.has("ws") && query.get("ws") !== name) {
    query.delete("ws");
    const path = rest ? `${view}/${encodeURIComponent(rest)}` : view;
    history.replaceState(null, "", linkTo(path, Object.fromEntries(query)));
  }
  change({ workspace: name, status: null });
  void refreshStatus();
}
/** Goes to the workspace that the link names, also in a page that is open already. */
export function followLink(): void {
  const wanted = readRoute().query.get("ws");
  const { workspaces, workspace, access } = current();
  if (access !== "open" || !wanted || wanted === workspace) return;
  if (workspaces.some((one) => one.name === wanted)) chooseWorkspace(wanted);
  else toast(t("There is no workspace “{name}”.", { name: wanted }));
}
const findScope = (): Workspace["scope"] | undefined =>
  current().workspaces.find((one) => one.name === current().workspace)?.scope;
export const mayWrite = (): boolean =>
  ["write", "admin"].includes(findScope() ?? "");
export const isAdmin = (): boolean => findScope() === "admin";

export interface Place {
  view: string;
  rest: string;
  query: URLSearchParams;
}
/** Reads `#/view/rest?query`. */
export function readRoute(hash = location.hash): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const [view = "", ...rest] = path.split("/");
  return { view: view || "ask", rest: rest.map(decodeURIComponent).join("/"), query: new URLSearchParams(query) };
}
export const linkTo = (view: string, query: Record<string, string> = {}): string => {
  const tail = new URLSearchParams(query).toString();
  return `#/${view}${tail ? `?${tail}` : ""}`;
};
export const go = (view: string, query: Record<string, string> = {}): void => {
  location.hash = linkTo(view, query);
};
export function useRoute(): Place {
  const [place, setPlace] = useState(readRoute());
  useLayoutEffect(() => {
    const tell = () => setPlace(readRoute());
    addEventListener("hashchange", tell);
    return () => removeEventListener("hashchange", tell);
  }, []);
  return place;
}
