// The shell: key, workspace, navigation, theme, language, keyboard; views load when they are used.
import { render, type ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, at, call, get } from "./api";
import { forgetAnswers, keepTurns, restoreTurns } from "./ask-model";
import { loadLanguage, t, tn } from "./i18n";
import {
  applyLook,
  change,
  chooseWorkspace,
  current,
  enter,
  followLink,
  go,
  leave,
  linkTo,
  remember,
  start,
  toast,
  useRoute,
  useShared,
  type Language,
  type Theme,
} from "./state";
import "./style.css";
import { describe, Icon, Problem, Words } from "./ui";
import { Ask } from "./views/ask";
import { Conversations } from "./views/conversations";

const VIEWS: Record<string, () => Promise<ComponentType>> = {
  documents: async () => (await import("./views/documents")).Documents,
  graph: async () => (await import("./views/graph")).GraphView,
  compare: async () => (await import("./views/compare")).Compare,
  tree: async () => (await import("./views/tree")).Tree,
  schema: async () => (await import("./views/schema")).Schema,
  settings: async () => (await import("./views/settings")).SettingsView,
};
const NAV: [string, string][] = [
  ["ask", "Ask"],
  ["documents", "Documents"],
  ["graph", "Graph"],
  ["compare", "Compare"],
  ["tree", "Tree"],
  ["schema", "Schema"],
  ["settings", "Settings"],
];

function Logo() {
  return (
    <svg class="logo" viewBox="0 0 32 32" aria-hidden="true">
      <circle cx="14" cy="15" r="10" />
      <path d="M5 12c6-4 13-4 18 1M4.500 18c6 3 13 3 18.500-1M9 6.500c5 3 9 9 8.500 17.500M19.500 6.800c-6 3-10.500 9-10.500 16.500M14 25c5 3 10 3 15 2" />
    </svg>
  );
}

function Lazy({ name }: { name: string }) {
  const [View, setView] = useState<ComponentType | null>(null);
  const [problem, setProblem] = useState<unknown>(null);
  useEffect(() => {
    let wanted = true;
    VIEWS[name]!().then(
      (found) => wanted && setView(() => found),
      () => wanted && setProblem(new ApiError(0, "")),
    );
    return () => void (wanted = false);
  }, [name]);
  // Browsers keep that a module failed, so only a fresh page is sure to load it once the server answers;
  // the conversation outlives it.
  const retry = () => void get("ready").then(() => location.reload(), setProblem);
  if (problem) return <Problem error={problem} onRetry={retry} />;
  if (View) return <View />;
  return (
    <>
      <h1 class="hidden">{t(NAV.find(([view]) => view === name)![1])}</h1>
      <div class="loading" role="status" aria-label={t("Loading")} />
    </>
  );
}

function Gate() {
  const { access, problem } = useShared();
  const [key, setKey] = useState("");
  const [keep, setKeep] = useState(false);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    await enter(key.trim(), keep);
    setBusy(false);
  };
  return (
    <main class="gate" id="main">
      <form class="card" onSubmit={submit}>
        <p class="brand">
          <Logo /> Clew
        </p>
        {access === "unreachable" ? (
          <>
            <h1>{t("The server does not answer")}</h1>
            <p class="soft" role="alert">
              <Words text={problem || t("Check that `clew serve` is running, then try again.")} />
            </p>
            <button type="button" class="main" onClick={() => void start()}>
              {t("Try again")}
            </button>
          </>
        ) : (
          <>
            <h1>{t("Enter your key")}</h1>
            <p class="soft">
              <Words text={t("Whoever runs this server makes keys with `clew keys add`.")} />
            </p>
            <label>
              {t("Key")}
              <input
                type="password"
                autocomplete="off"
                spellcheck={false}
                placeholder="clew_…"
                value={key}
                onInput={(e) => setKey(e.currentTarget.value)}
                autofocus
                required
              />
            </label>
            {problem === "wrong-key" && (
              <p class="wrong" role="alert">
                {t("This key is not valid, or no longer.")}
              </p>
            )}
            <label class="check">
              <input type="checkbox" checked={keep} onChange={(e) => setKeep(e.currentTarget.checked)} />
              {t("Remember it in this browser")}
            </label>
            <button class="main" disabled={busy}>
              {t("Open")}
            </button>
          </>
        )}
      </form>
      <div class="gate-look">
        <Look />
      </div>
    </main>
  );
}

function Look() {
  const { theme, language } = useShared();
  const setTheme = (value: Theme) => (remember("theme", value), change({ theme: value }));
  const setLanguage = async (value: Language) => {
    try {
      await loadLanguage(value);
    } catch {
      return toast(describe(new ApiError(0, "")));
    }
    remember("language", value);
    change({ language: value });
  };
  return (
    <div class="look">
      <select aria-label={t("Theme")} value={theme} onChange={(e) => setTheme(e.currentTarget.value as Theme)}>
        <option value="auto">{t("Auto")}</option>
        <option value="light">{t("Light")}</option>
        <option value="dark">{t("Dark")}</option>
      </select>
      <select
        aria-label={t("Language")}
        value={language}
        onChange={(e) => void setLanguage(e.currentTarget.value as Language)}
      >
        <option value="en">English</option>
        <option value="zh">中文</option>
      </select>
    </div>
  );
}

function Sidebar({ view }: { view: string }) {
  const { workspaces, workspace, status } = useShared();
  const locked = Boolean(sessionStorage.getItem("clew.key"));
  return (
    <aside class="side">
      <a class="brand" href="#/ask">
        <Logo /> Clew
      </a>
      <label class="workspace">
        <span class="small soft">{t("Workspace")}</span>
        <select aria-label={t("Workspace")} value={workspace} onChange={(e) => chooseWorkspace(e.currentTarget.value)}>
          {workspaces.map((one) => (
            <option key={one.name}>{one.name}</option>
          ))}
        </select>
      </label>
      <nav aria-label={t("Views")}>
        {NAV.map(([name, label], n) => (
          <a key={name} href={linkTo(name)} aria-current={view === name ? "page" : undefined} title={`Alt+${n + 1}`}>
            <Icon name={name} /> <span>{t(label)}</span>
          </a>
        ))}
      </nav>
      {view === "ask" && <Conversations />}
      <div class="foot">
        {status && (
          <p class="small soft counts">
            {tn(status.documents, "1 document", "{n} documents")}
            <br />
            {tn(status.entities, "1 entity", "{n} entities")} ·{" "}
            {tn(status.facts, "1 fact", "{n} facts")}
          </p>
        )}
        <Look />
        {locked && (
          <button class="quiet" onClick={() => (forgetAnswers(), leave())}>
            {t("Forget the key")}
          </button>
        )}
      </div>
    </aside>
  );
}

/** Alt and a number changes the view, a slash goes to the first field to write in. */
function useKeyboard(): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const typing = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
      if (event.altKey && /^[1-7]$/.test(event.key)) {
        event.preventDefault();
        go(NAV[Number(event.key) - 1]![0]);
      } else if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
        const field = document.querySelector<HTMLElement>("main textarea, main input[type=search]");
        if (field) {
          event.preventDefault();
          field.focus();
        }
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}

/** What a server without any workspace shows; without keys everybody may make the first one. */
function NoWorkspace() {
  const [name, setName] = useState("default");
  const [error, setError] = useState<unknown>(null);
  if (sessionStorage.getItem("clew.key")) return <p class="pad">{t("This key may not use any workspace.")}</p>;
  const make = (event: Event) => {
    event.preventDefault();
    void call("PUT", at(name.trim())).then(start, setError);
  };
  return (
    <form class="empty" onSubmit={make}>
      <h1>{t("There is no workspace yet")}</h1>
      <div class="row">
        <input aria-label={t("Name")} required value={name} onInput={(e) => setName(e.currentTarget.value)} />
        <button class="main">{t("Make it")}</button>
      </div>
      <Problem error={error} />
    </form>
  );
}

function App() {
  const shared = useShared();
  const { view } = useRoute();
  const main = useRef<HTMLElement>(null);
  useKeyboard();
  useEffect(applyLook, [shared.theme, shared.language]);
  const shown = view in VIEWS ? view : "ask";
  const label = NAV.find(([name]) => name === shown)![1];
  useEffect(() => {
    document.title = `${t(label)} · Clew`;
  }, [shown, shared.language]);
  if (shared.access === "starting") return <div class="loading" role="status" aria-label={t("Loading")} />;
  if (shared.access !== "open") return <Gate />;
  const skip = (event: Event) => {
    event.preventDefault();
    main.current?.focus();
  };
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={skip}>
        {t("Skip to the content")}
      </a>
      <Sidebar view={shown} />
      <main id="main" ref={main} tabIndex={-1} key={shared.workspace + shown} class={`view-${shown}`}>
        {shared.workspace ? (
          shown === "ask" ? (
            <Ask />
          ) : (
            <Lazy name={shown} />
          )
        ) : (
          <NoWorkspace />
        )}
      </main>
      <div class="toast" role="status" aria-live="polite" hidden={!shared.toast}>
        {shared.toast}
      </div>
    </div>
  );
}

applyLook();
const open = () => {
  restoreTurns();
  addEventListener("pagehide", keepTurns);
  addEventListener("hashchange", followLink); // before the views hear of it, which ask in the workspace
  render(<App />, document.getElementById("app")!);
  void start();
};
// Without its words the page is in English.
void loadLanguage(current().language).then(open, () => (change({ language: "en" }), open()));
