// Ask: the conversation, each answer with its thread, its reasoning and its sources.
import { useEffect, useRef, useState } from "preact/hooks";
import type { Citation } from "../api";
import { ask, closeShared, showShared, startConversation, stop, useSharedTurn, useTurns, type Turn } from "../ask-model";
import { t, tn, translateMessage } from "../i18n";
import { Markdown } from "../markdown";
import { dropMarks } from "../markup";
import { Reader } from "../reader";
import { Candidate } from "../candidate";
import { explainRefusal, formatSource, headRefusal, isBareRefusal, isHeaded, packAnswer, partNote, partRepeated, toMarkdown, unpackAnswer } from "../share";
import { current, toast, useRoute, useShared } from "../state";
import { readRow } from "../tables";
import { findThread, listRead } from "../thread";
import { formatCost, formatSeconds, Icon, RecipeSelect, Words } from "../ui";
import { ConversationsButton } from "./conversations";
import { ThreadDrawing } from "./thread";
import { Reasoning } from "./reasoning";

interface Opened {
  place: Citation;
  all: Citation[];
  workspace: string;
}
type Open = (opened: Opened) => void;

export function Ask() {
  const own = useTurns();
  const shared = useSharedTurn();
  const turns = shared ? [shared] : own;
  const { rest, query } = useRoute();
  const [opened, setOpened] = useState<Opened | null>(null);
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!rest) return closeShared();
    let wanted = true;
    void unpackAnswer(rest).then((found) => {
      if (!wanted) return;
      if (found) showShared(found, query.get("ws") || current().workspace);
      else toast(t("This link is incomplete."));
    });
    return () => void (wanted = false);
  }, [rest]);
  const asked = query.get("q");
  useEffect(() => {
    if (asked && !turns.some((turn) => turn.question === asked)) void ask(asked, query.get("recipe") ?? "", "open");
  }, [asked]);
  useFollowing(list, turns);
  return (
    <>
      <h1 class="hidden">{t("Ask")}</h1>
      {turns.length === 0 ? (
        <Welcome />
      ) : (
        <div class="turns" ref={list}>
          <div class="row spread">
            <ConversationsButton />
            {shared && own.length > 0 ? (
              <a class="button quiet" href="#/ask">
                ← {t("Back to your conversation")}
              </a>
            ) : (
              <button class="quiet" onClick={() => (startConversation(), (location.hash = "#/ask"))}>
                <Icon name="plus" /> {t("New conversation")}
              </button>
            )}
          </div>
          {turns.map((turn) => (
            <TurnView key={turn.id} turn={turn} onOpen={setOpened} />
          ))}
        </div>
      )}
      <Composer first={turns.length === 0} />
      {opened && <Reader {...opened} onClose={() => setOpened(null)} />}
    </>
  );
}

/** Brings a follow-up to the top as it grows, until the reader scrolls. */
function useFollowing(list: { current: HTMLElement | null }, turns: Turn[]): void {
  const following = useRef(false);
  useEffect(() => {
    const leave = (event: Event) => {
      if (!(event instanceof KeyboardEvent) || /^(Page|Home|End|Arrow)/.test(event.key)) following.current = false;
    };
    const events = ["wheel", "touchmove", "pointerdown", "keydown"];
    events.forEach((name) => addEventListener(name, leave, { passive: true }));
    return () => events.forEach((name) => removeEventListener(name, leave));
  }, []);
  useEffect(() => void (following.current = turns.length > 1), [turns.length]);
  useEffect(() => {
    if (following.current) list.current?.lastElementChild?.scrollIntoView({ block: "start", behavior: "smooth" });
  }, [turns]);
}

function Welcome() {
  const { status } = useShared();
  return (
    <section class="welcome">
      <svg class="hero" viewBox="0 0 600 90" aria-hidden="true">
        <path pathLength={1} d="M0 60 C 80 10, 120 90, 200 50 S 330 10, 380 48 S 500 84, 600 30" />
        {[
          [100, 51],
          [301, 20],
          [471, 73.5],
        ].map(([x, y]) => (
          <circle key={x} cx={x} cy={y} r={6} />
        ))}
      </svg>
      <p class="title">{t("Ask your documents.")}</p>
      <p class="lead">{t("Every sentence of an answer names the words it rests on, and you can follow the thread there.")}</p>
      {status?.documents === 0 ? (
        <p>
          <a class="button main" href="#/documents">
            <Icon name="upload" /> {t("Add documents first")}
          </a>
        </p>
      ) : (
        <ConversationsButton />
      )}
    </section>
  );
}

const isTouched = (): boolean => matchMedia("(pointer: coarse)").matches;

function Composer({ first }: { first: boolean }) {
  const [text, setText] = useState("");
  const [recipe, setRecipe] = useState("");
  const [strict, setStrict] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  // On a phone the focus would bring up the keyboard, over half of what is shown.
  useEffect(() => void (isTouched() || field.current?.focus()), []);
  const submit = (event: Event) => {
    event.preventDefault();
    const asked = field.current!.value.trim();
    if (!asked) return;
    void ask(asked, recipe, strict ? "reject" : "open");
    setText("");
    if (isTouched()) (document.activeElement as HTMLElement).blur();
  };
  return (
    <form class={first ? "composer first" : "composer"} onSubmit={submit}>
      <textarea
        ref={field}
        rows={first ? 2 : 1}
        maxLength={20_000}
        aria-label={t("Your question")}
        placeholder={first ? t("Ask a question …") : t("Ask a follow-up …")}
        value={text}
        onInput={(e) => setText(e.currentTarget.value)}
        onKeyDown={(e) => e.key === "Enter" && !e.shiftKey && !e.isComposing && submit(e)}
      />
      <div class="row spread">
        <div class="row">
          <RecipeSelect label={t("Recipe")} value={recipe} onChange={setRecipe} />
          <label class="check small">
            <input type="checkbox" checked={strict} onChange={(e) => setStrict(e.currentTarget.checked)} />
            {t("Refuse rather than guess")}
          </label>
        </div>
        <button class="main" disabled={!text.trim()}>
          {t("Ask")} <Icon name="send" />
        </button>
      </div>
    </form>
  );
}

function TurnView({ turn, onOpen }: { turn: Turn; onOpen: Open }) {
  const thread = findThread(turn.question, turn.answer, turn.steps, turn.text);
  const all = turn.answer?.citations ?? [];
  const open = (place: Citation) => onOpen({ place, all, workspace: turn.workspace });
  const read = (doc: string) => {
    const chunk = turn.answer?.chunks.find((one) => one.doc === doc);
    const { id = "", start = 0, end = 0, text = "" } = chunk ?? {};
    open(all.find((one) => one.doc === doc) ?? { doc, chunk: id, start, end, quote: text });
  };
  const live = turn.state === "running";
  return (
    <article class="turn" aria-busy={live}>
      <h2>{turn.question}</h2>
      <div class="turn-body">
        <div class="answer">
          <AnswerText turn={turn} open={open} />
          {turn.answer && <Sources turn={turn} open={open} />}
        </div>
        <div class="why">
          {thread && (
            <section class="panel">
              <h3>{t("Thread")}</h3>
              <ThreadDrawing thread={thread} live={live} onOpen={open} />
            </section>
          )}
          {!turn.answer && <ReadSoFar docs={listRead(turn.steps)} onRead={read} />}
          {turn.steps.length > 0 && (
            <section class="panel">
              <h3>{t("Reasoning")}</h3>
              <Reasoning steps={turn.steps} question={turn.question} answer={turn.answer} onRead={read} />
            </section>
          )}
        </div>
      </div>
    </article>
  );
}

/** The quoted words; of a row of a table its cells under the names of their columns. */
function Quote({ text }: { text: string }) {
  const row = readRow(text);
  if (!row) return <span class="quote">“{dropMarks(text)}”</span>;
  return (
    <span class="cells">
      {row.map((cell) => (
        <span key={cell.start}>
          <span class="small soft">{cell.column}</span> {dropMarks(cell.text)}
        </span>
      ))}
    </span>
  );
}

const MOST_READ = 6;
/** What was retrieved before there is an answer: a list, as nothing says yet what connects it. */
function ReadSoFar({ docs, onRead }: { docs: string[]; onRead: (doc: string) => void }) {
  if (!docs.length) return null;
  const more = docs.length - MOST_READ;
  return (
    <section class="panel">
      <h3>{t("Read so far")}</h3>
      <ul class="docs small">
        {docs.slice(0, MOST_READ).map((doc) => (
          <li key={doc}>
            <button class="plain" onClick={() => onRead(doc)}>
              {doc}
            </button>
          </li>
        ))}
      </ul>
      {more > 0 && <p class="small soft">{tn(more, "and 1 more", "and {n} more")}</p>}
    </section>
  );
}

const MESSAGES: Record<string, string> = {
  stopped: "Stopped. What was found until then is shown.",
  lost: "The connection was lost before the answer was complete.",
};

function AnswerText({ turn, open }: { turn: Turn; open: (place: Citation) => void }) {
  const { answer } = turn;
  const cite = (number: number) => {
    const place = answer?.citations[number - 1];
    if (!place) return <sup class="cite">{number}</sup>;
    const label = t("Citation {n}: {doc}", { n: number, doc: place.doc });
    return (
      <button class="cite" aria-label={label} title={dropMarks(place.quote)} onClick={() => open(place)}>
        {number}
      </button>
    );
  };
  const headed = answer && isHeaded(answer);
  const parted = headed ? partRepeated(turn.text, answer.candidate) : null;
  return (
    <>
      {turn.state === "shared" && (
        <p class="note small">{t("This answer came with a link. Ask again to have it checked by this server.")}</p>
      )}
      {answer?.verdict === "refused" && (
        <div class="refusal">
          <strong>{t(headRefusal(answer))}</strong>
          {answer.missing && <p><Words text={explainRefusal(answer)} /></p>}
        </div>
      )}
      {headed && <Candidate answer={answer} marks={parted!.marks} cite={cite} />}
      {answer && isBareRefusal(answer) ? null : turn.text ? (
        <div aria-live="polite">
          <Markdown text={parted ? parted.rest : turn.text} cite={cite} />
        </div>
      ) : (
        turn.state === "running" && (
          <p class="working" role="status">
            {t("Following the thread …")}
          </p>
        )
      )}
      {(MESSAGES[turn.state] || turn.state === "failed") && (
        <p class="problem" role="alert">
          <Words text={turn.state === "failed" ? translateMessage(turn.problem) : t(MESSAGES[turn.state]!)} />
        </p>
      )}
      {answer && <Figures turn={turn} />}
      <Actions turn={turn} />
    </>
  );
}

function Figures({ turn }: { turn: Turn }) {
  const answer = turn.answer!;
  const sure = answer.confidence;
  const { ended, rest } = partNote(answer);
  return (
    <div class="figures small soft">
      {typeof sure === "number" && (
        <span class="confidence">
          <meter min={0} max={1} low={0.35} high={0.7} optimum={1} value={sure} aria-label={t("Confidence")} />
          {t("{n} % sure", { n: Math.round(sure * 100) })}
        </span>
      )}
      <span>{answer.recipe}</span>
      <span>{formatSeconds(answer.seconds)}</span>
      <span>{formatCost(answer.usage)}</span>
      {ended && <span class="wide wrong"><Words text={t("The best answer so far, not complete: {why}", { why: translateMessage(ended) })} /></span>}
      {rest && <span class="wide"><Words text={translateMessage(rest)} /></span>}
    </div>
  );
}

function Actions({ turn }: { turn: Turn }) {
  const { answer } = turn;
  if (turn.state === "running")
    return (
      <div class="row actions">
        <button class="quiet" onClick={() => stop(turn.id)}>
          <Icon name="stop" /> {t("Stop")}
        </button>
      </div>
    );
  const share = async () => {
    const link = `${location.href.split("#")[0]}#/ask/${await packAnswer(answer!)}?ws=${encodeURIComponent(turn.workspace)}`;
    await copy(link, t("Link copied: it holds the answer itself."));
  };
  return (
    <div class="row actions">
      {answer && (
        <>
          <button class="quiet" onClick={() => void copy(toMarkdown(answer), t("Copied as Markdown with footnotes."))}>
            <Icon name="copy" /> {t("Copy")}
          </button>
          <button class="quiet" onClick={() => void share()}>
            <Icon name="link" /> {t("Link")}
          </button>
        </>
      )}
      <button class="quiet" onClick={() => void ask(turn.question, turn.recipe, turn.mode, turn.id)}>
        <Icon name="again" /> {t("Ask again")}
      </button>
      <RecipeSelect
        label={t("Ask again with another recipe")}
        value={turn.recipe}
        onChange={(name) => void ask(turn.question, name, turn.mode, turn.id)}
      />
    </div>
  );
}

async function copy(text: string, done: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(done);
  } catch {
    toast(t("The browser does not allow copying here."));
  }
}

function Sources({ turn, open }: { turn: Turn; open: (place: Citation) => void }) {
  const { citations, chunks } = turn.answer!;
  const cited = new Set(citations.map((one) => one.doc));
  const others = [...new Map(chunks.filter((one) => !cited.has(one.doc)).map((one) => [one.doc, one])).values()];
  const titles = new Map(chunks.map((one) => [one.doc, one.title]));
  return (
    <>
      {citations.length > 0 && (
        <section class="sources" aria-label={t("Sources")}>
          {citations.map((one, n) => (
            <button key={n} class="source" onClick={() => open(one)}>
              <span class="number">{n + 1}</span>
              <span class="source-text">
                <b>{titles.get(one.doc) || one.doc}</b>
                <Quote text={one.quote} />
                <span class="small soft">{formatSource(one)}</span>
              </span>
            </button>
          ))}
        </section>
      )}
      {others.length > 0 && (
        <details class="read small">
          <summary>{tn(others.length, "1 more document was read", "{n} more documents were read")}</summary>
          <ul>
            {others.map((one) => (
              <li key={one.id}>
                <button
                  class="plain"
                  onClick={() => open({ doc: one.doc, chunk: one.id, start: one.start, end: one.end, quote: one.text })}
                >
                  {one.title || one.doc}
                </button>
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}
