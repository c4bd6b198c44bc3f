// Small parts that several views use.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, type Recipe, type Usage } from "./api";
import { t, tn, translateMessage } from "./i18n";
import { useShared } from "./state";

const ICONS: Record<string, string> = {
  ask: "M4 5h16v11H9l-5 4z",
  documents: "M7 3h7l5 5v13H7zM14 3v5h5",
  graph: "M8 7a2.5 2.5 0 1 1-5 0 2.5 2.5 0 0 1 5 0M21 6a2.500 2.500 0 1 1-5 0 2.500 2.500 0 0 1 5 0M17 18a2.500 2.500 0 1 1-5 0 2.500 2.500 0 0 1 5 0M8 6.800l8-.6M7 9l6 7M18 8.500l-2.800 7.200",
  compare: "M4 5h7v14H4zM14 5h7v14h-7z",
  tree: "M4 5h6v5H4zM14 5h6v5h-6zM14 14h6v5h-6zM10 7.500h4M12 7.500v9h2",
  schema: "M4 6h16M4 12h10M4 18h6",
  settings: "M4 8h10M18 8h2M4 16h2M10 16h10M16 6v4M8 14v4",
  stop: "M7 7h10v10H7z",
  send: "M5 12h13M12 6l6 6-6 6",
  copy: "M9 9h10v11H9zM5 15V4h10",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  again: "M19 8a8 8 0 1 0 1 6M20 4v5h-5",
  close: "M6 6l12 12M18 6L6 18",
  upload: "M12 16V5M7 10l5-5 5 5M5 19h14",
  pen: "M4 20l1-4L16 5l3 3L8 19z",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  plus: "M12 5v14M5 12h14",
  search: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14M16 16l5 5",
};
export function Icon({ name }: { name: string }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}

/** A text whose words between backticks are what is typed or read in a terminal. */
export function Words({ text }: { text: string }) {
  return <>{text.split(/`([^`\n]+)`/).map((part, n) => (n % 2 ? <code key={n}>{part}</code> : part))}</>;
}

export function Problem({ error, onRetry }: { error: unknown; onRetry?: () => void }) {
  if (!error) return null;
  return (
    <div class="problem" role="alert">
      <p>
        <Words text={describe(error)} />
      </p>
      {onRetry && (
        <button class="quiet" onClick={onRetry}>
          <Icon name="again" /> {t("Try again")}
        </button>
      )}
    </div>
  );
}
export const describe = (error: unknown): string => {
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
  if (error.status === 0) return t("The server does not answer. What is here stays; try again in a moment.");
  return translateMessage(error.message) || t("The server answers with status {n}.", { n: error.status });
};

/** Loads once and again when a dependency changes; keeps what it had while loading. */
export function useLoad<T>(load: () => Promise<T>, deps: unknown[]): [T | null, unknown, () => void] {
  const [found, setFound] = useState<T | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [again, setAgain] = useState(0);
  useEffect(() => {
    let wanted = true;
    load().then(
      (value) => wanted && (setFound(value), setError(null)),
      (problem) => wanted && setError(problem),
    );
    return () => void (wanted = false);
  }, [...deps, again]);
  return [found, error, () => setAgain((n) => n + 1)];
}

/** A panel over the page; Escape and a click outside close it, focus returns where it was. */
export function Drawer(props: { title: string; onClose: () => void; children: ComponentChildren; wide?: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current!;
    const before = document.activeElement;
    if (!element.open) element.showModal();
    return () => {
      element.close();
      if (before instanceof HTMLElement || before instanceof SVGElement) before.focus();
    };
  }, []);
  const onClick = (event: MouseEvent) => event.target === dialog.current && props.onClose();
  return (
    <dialog ref={dialog} class="drawer" aria-label={props.title} onClick={onClick} onCancel={props.onClose}>
      <div class="drawer-body">
        <header>
          <h2>{props.title}</h2>
          <button class="quiet round" aria-label={t("Close")} onClick={props.onClose}>
            <Icon name="close" />
          </button>
        </header>
        {props.children}
      </div>
    </dialog>
  );
}

/** For `ref`: what replaces the button that was pressed goes on with its focus. */
export const takeFocus = (element: HTMLElement | null): void => element?.focus();

/** Each name once: an agent hides the retriever of its name, as it does when it is asked for. */
export function listOnce(recipes: Recipe[]): Recipe[] {
  const agents = new Set(recipes.filter((one) => one.kind === "agent").map((one) => one.name));
  return recipes.filter((one) => one.kind === "agent" || !agents.has(one.name));
}
/** The recipes, retrievers and agents apart; empty means the server's default. */
export function RecipeSelect(props: { value: string; onChange: (name: string) => void; label: string; only?: string }) {
  const { recipes } = useShared();
  const kinds = [...new Set(recipes.map((one) => one.kind))].filter((kind) => !props.only || kind === props.only);
  const named = listOnce(recipes.filter((one) => kinds.includes(one.kind)));
  return (
    <select aria-label={props.label} value={props.value} onChange={(e) => props.onChange(e.currentTarget.value)}>
      <option value="">{t("default recipe")}</option>
      {kinds.map((kind) => (
        <optgroup key={kind} label={t(kind)}>
          {named
            .filter((one) => one.kind === kind)
            .map((one) => (
              <option key={one.name} value={one.name} title={one.about}>
                {one.name}
              </option>
            ))}
        </optgroup>
      ))}
    </select>
  );
}

export const formatSeconds = (seconds: number): string =>
  t("{n} s", { n: seconds.toFixed(seconds < 10 ? 2 : 0) });
export const formatMoney = (money: number): string => (money ? `$${money.toFixed(4)}` : "$0");
export const countCalls = (calls: number): string => tn(calls, "1 call", "{n} calls");
export const formatCost = (usage: Usage): string => {
  const tokens = usage.prompt_tokens + usage.completion_tokens;
  if (!usage.calls && !usage.cached_calls) return t("no model call");
  if (!usage.calls) return tn(usage.cached_calls, "1 reply from the cache", "{n} replies from the cache");
  const parts = [countCalls(usage.calls), t("{n} tokens", { n: tokens.toLocaleString() })];
  if (usage.money) parts.push(formatMoney(usage.money));
  return parts.join(" · ");
};
export const formatBytes = (bytes: number): string =>
  bytes < 1e3 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
/** A type in the language of the page; those a model or a user named stay as they are. */
export const nameType = (type: string): string => (OWN_TYPES.has(type) ? t(type) : type);
const OWN_TYPES = new Set(["name", "date", "number", "quoted", "term", "title"]);
/** What is known of an entity besides its facts, such as a date or a number. */
export function Attributes({ of }: { of: Record<string, string> | undefined }) {
  const known = Object.entries(of ?? {});
  if (!known.length) return null;
  return (
    <dl class="attributes">
      {known.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
