// Graph: search, expand, filter, paths, the evidence behind every line, and corrections.
import { useEffect, useRef, useState } from "preact/hooks";
import { at, get, type Citation, type Entity } from "../api";
import { countTypes, GraphCanvas, type ColourBy, type Overview, type OverviewNode } from "../graph/canvas";
import { toHits, useEntities, type SharedFact } from "../entities";
import { colourOf } from "../graph/colours";
import { Find } from "../find";
import { t, tn } from "../i18n";
import { Reader } from "../reader";
import { go, toast, useRoute, useShared } from "../state";
import { describe, Empty, nameType, Problem, useLoad } from "../ui";
import { Inspect, PathForm, type Neighbour, type Shown } from "./inspect";

const SIZES = [300, 1000, 3000, 10_000];

export function GraphView() {
  const { workspace, status, theme } = useShared();
  const { query } = useRoute();
  const [limit, setLimit] = useState(300);
  const [label, setLabel] = useState("");
  const [since, setSince] = useState(0);
  const [found, error, reload] = useLoad(
    () => get<Overview>(at(workspace, "/overview", { limit, label, ...(since ? { since } : {}) })),
    [workspace, limit, label, since],
  );
  const box = useRef<HTMLDivElement>(null);
  const beside = useRef<HTMLElement>(null);
  const canvas = useRef<GraphCanvas | null>(null);
  const [shown, setShown] = useState<Shown>(null);
  const [reading, setReading] = useState<Citation | null>(null);
  const [broken, setBroken] = useState("");

  useEffect(() => {
    try {
      const worker = new Worker(new URL("../graph/layout.worker.ts", import.meta.url), { type: "module" });
      const made = new GraphCanvas(box.current!, worker);
      canvas.current = made;
      made.onNode = (key) => void select(key);
      made.onEdge = (one, other) => setShown({ kind: "pair", key: one, other });
      made.onNothing = () => clear();
      return () => made.close();
    } catch (problem) {
      setBroken(describe(problem)); // without WebGL the lists beside still work
    }
  }, []);
  useEffect(() => {
    if (found) canvas.current?.load(found);
  }, [found]);
  useEffect(() => canvas.current?.setTheme(), [theme]);
  const wanted = query.get("name");
  useEffect(() => {
    if (wanted && found) void openNamed(wanted);
  }, [wanted, found]);

  const clear = () => {
    canvas.current?.select(null);
    canvas.current?.lightPath([]);
    setShown(null);
  };
  const select = async (key: number) => {
    canvas.current?.lightPath([]);
    canvas.current?.select(key);
    setShown({ kind: "entity", key });
    await canvas.current?.lookAt(key);
  };
  const expand = async (entity: { key: number; name: string; type: string }) => {
    try {
      const { neighbours } = await get<{ neighbours: Neighbour[] }>(at(workspace, `/entities/${entity.key}/neighbours`, { limit: 40 }));
      const nodes = [toNode(entity, neighbours.length), ...neighbours.map((one) => toNode(one, one.chunks))];
      canvas.current?.add(entity.key, nodes, neighbours.map((one) => [entity.key, one.key, one.facts[0]?.key ?? 0]));
      await select(entity.key);
    } catch (problem) {
      toast(describe(problem));
    }
  };
  const openNamed = async (name: string) => {
    const { entities } = await get<{ entities: Entity[] }>(at(workspace, "/entities", { query: name, limit: 1 }));
    if (entities[0]) await expand(entities[0]);
    else toast(t("No entity has this name."));
  };
  const nameLines = (key: number, neighbours: Neighbour[]) =>
    canvas.current?.nameLines(key, new Map(neighbours.map((one) => [one.key, one.facts[0]?.relation ?? ""])));
  const showPath = (keys: Entity[], facts: SharedFact[]) => {
    const edges = facts.map((fact, n): [number, number, number] => [keys[n]!.key, keys[n + 1]!.key, fact.key]);
    canvas.current?.add(keys[0]!.key, keys.map((one) => toNode(one, one.chunks)), edges);
    facts.forEach((fact, n) => canvas.current?.nameLines(keys[n]!.key, new Map([[keys[n + 1]!.key, fact.relation]])));
    canvas.current?.select(null);
    canvas.current?.lightPath(keys.map((one) => one.key));
  };
  /** Back to the summary; what had the focus goes with the details, so the list gets it. */
  const leave = () => {
    clear();
    if (wanted) go("graph"); // else what is loaded next would open the entity of the address again
    beside.current?.focus({ preventScroll: true });
  };
  const onKey = (event: KeyboardEvent) => {
    const inDialog = event.target instanceof Element && event.target.closest("dialog");
    if (event.key === "Escape" && shown && !event.defaultPrevented && !inDialog) leave();
  };
  const onCanvasKey = (event: KeyboardEvent) => {
    if (!event.altKey && !event.ctrlKey && !event.metaKey && canvas.current?.press(event.key)) event.preventDefault();
  };
  return (
    <div class="graph" onKeyDown={onKey}>
      <h1 class="hidden">{t("Graph")}</h1>
      <div class="stage">
        <div
          class="canvas"
          ref={box}
          tabIndex={0}
          role="application"
          aria-label={t("Drawing of the graph: arrow keys move it, + and − zoom, 0 fits it. The list beside it holds the same.")}
          onKeyDown={onCanvasKey}
        />
        <div class="tools">
          <Search onChoose={(entity) => void expand(entity)} />
          <select aria-label={t("How many entities")} value={limit} onChange={(e) => setLimit(Number(e.currentTarget.value))}>
            {SIZES.filter((_, n) => n === 0 || SIZES[n - 1]! < (status?.entities ?? Infinity)).map((size) => (
              <option key={size} value={size}>
                {t("{n} entities", { n: size.toLocaleString() })}
              </option>
            ))}
          </select>
          {found && <Documents found={found} label={label} since={since} onLabel={setLabel} onSince={setSince} />}
          <Zoom canvas={canvas} />
        </div>
        {found && <Filters found={found} canvas={canvas} />}
      </div>
      <section class="inspect" aria-label={t("Details")} tabIndex={0} ref={beside}>
        <Problem error={error} onRetry={reload} />
        {found && !found.nodes.length && !status?.entities && (
          <Empty title={t("No entities yet")}>
            <a class="button main" href="#/documents">
              {t("Add documents first")}
            </a>
          </Empty>
        )}
        {broken && <p class="problem">{broken === "WebGL" ? t("This browser has no WebGL, so nothing is drawn; the lists hold the same.") : broken}</p>}
        <PathForm onPath={showPath} onFact={(key) => setShown({ kind: "fact", key })} onPair={(key, other) => setShown({ kind: "pair", key, other })} />
        <Inspect shown={shown} found={found} onSelect={(key) => void select(key)} onExpand={(entity) => void expand(entity)} onFact={(key) => setShown({ kind: "fact", key })} onPair={(key, other) => setShown({ kind: "pair", key, other })} onRead={setReading} onClear={leave} onChanged={() => (leave(), reload())} onLines={nameLines} />
      </section>
      {reading && <Reader place={reading} onClose={() => setReading(null)} />}
    </div>
  );
}

const toNode = (one: { key: number; name: string; type: string }, facts: number): OverviewNode => ({
  key: one.key,
  name: one.name,
  type: one.type,
  facts,
  community: -1,
});

const DAY = 86_400;
const PERIODS: [string, number][] = [
  ["arrived today", DAY],
  ["arrived this week", 7 * DAY],
  ["arrived this month", 30 * DAY],
];
/** By label and by arrival of the documents that mention an entity; absent where there are none. */
function Documents(props: { found: Overview; label: string; since: number; onLabel: (label: string) => void; onSince: (since: number) => void }) {
  const { labels = [], arrivals = [] } = props.found;
  const [period, setPeriod] = useState("");
  const choose = (name: string) => {
    setPeriod(name);
    const length = PERIODS.find(([one]) => one === name)?.[1];
    props.onSince(length ? Math.max(1, Math.floor(Date.now() / 1000 - length)) : 0);
  };
  return (
    <>
      {(labels.length > 0 || props.label) && (
        <select aria-label={t("Label of the documents")} value={props.label} onChange={(e) => props.onLabel(e.currentTarget.value)}>
          <option value="">{t("every label")}</option>
          {labels.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      )}
      {arrivals.length > 0 && (
        <select aria-label={t("Arrival of the documents")} value={period} onChange={(e) => choose(e.currentTarget.value)}>
          <option value="">{t("whenever it arrived")}</option>
          {PERIODS.map(([name]) => (
            <option key={name} value={name}>
              {t(name)}
            </option>
          ))}
        </select>
      )}
    </>
  );
}

function Zoom({ canvas }: { canvas: { current: GraphCanvas | null } }) {
  return (
    <div class="row">
      <button class="quiet round" aria-label={t("Zoom in")} onClick={() => canvas.current?.zoom(0.7)}>
        +
      </button>
      <button class="quiet round" aria-label={t("Zoom out")} onClick={() => canvas.current?.zoom(1.4)}>
        −
      </button>
      <button class="quiet" onClick={() => canvas.current?.fit()}>
        {t("Fit")}
      </button>
    </div>
  );
}

function Search({ onChoose }: { onChoose: (entity: Entity) => void }) {
  const [text, setText] = useState("");
  const hits = useEntities(text);
  const choose = (key: number) => {
    setText("");
    onChoose(hits.find((one) => one.key === key)!);
  };
  return (
    <Find
      label={t("Find an entity")}
      placeholder={t("Find an entity …")}
      text={text}
      hits={toHits(hits)}
      onText={setText}
      onChoose={({ key }) => choose(key)}
      onClose={() => setText("")}
    />
  );
}

const COMMON_TYPES = 14; // stand in the legend at first
function Filters({ found, canvas }: { found: Overview; canvas: { current: GraphCanvas | null } }) {
  const grouped = found.communities.length > 0;
  const [by, setBy] = useState<ColourBy>(grouped ? "community" : "type");
  const [hidden, setHidden] = useState(new Set<string>());
  const [newest, setNewest] = useState(100);
  const [every, setEvery] = useState(false);
  const types = countTypes(found.nodes);
  const more = types.length - COMMON_TYPES;
  useEffect(() => canvas.current?.setColours(by), [by, found]);
  useEffect(() => {
    const keys = found.nodes.map((one) => one.key).sort((a, b) => a - b);
    const oldest = newest >= 100 ? 0 : keys[Math.floor((keys.length * (100 - newest)) / 100)]!;
    canvas.current?.setFilter(hidden, oldest);
  }, [hidden, newest, found]);
  const toggle = (type: string) => {
    const next = new Set(hidden);
    if (!next.delete(type)) next.add(type);
    setHidden(next);
  };
  return (
    <div class={every ? "legend every" : "legend"}>
      {grouped && (
        <select aria-label={t("Colours")} value={by} onChange={(e) => setBy(e.currentTarget.value as ColourBy)}>
          <option value="community">{t("by community")}</option>
          <option value="type">{t("by type")}</option>
        </select>
      )}
      <label class="check">
        <span class="soft">{t("newest {n} %", { n: newest })}</span>
        <input type="range" min={5} max={100} step={5} value={newest} onInput={(e) => setNewest(Number(e.currentTarget.value))} />
      </label>
      {more > 0 && (
        <button aria-expanded={every} onClick={() => setEvery(!every)}>
          {every ? t("fewer types") : tn(more, "1 more type", "{n} more types")}
        </button>
      )}
      {types.slice(0, every ? types.length : COMMON_TYPES).map(([type, count], n) => (
        <button key={type} aria-pressed={!hidden.has(type)} onClick={() => toggle(type)}>
          {by === "type" && <span class="dot" style={{ background: colourOf(n) }} />}
          {nameType(type) || t("without type")} {count}
        </button>
      ))}
    </div>
  );
}
