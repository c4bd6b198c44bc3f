// Beside the drawing: one entity or fact in words, with its sources; paths; corrections.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { at, get, type Citation, type Entity } from "../api";
import { isCrowded, type Overview } from "../graph/canvas";
import { describeShared, EntityField, findEntity, type SharedFact } from "../entities";
import { colourOf } from "../graph/colours";
import { t, tn } from "../i18n";
import { dropMarks } from "../markup";
import { mayWrite, refreshStatus, useShared } from "../state";
import { Attributes, Icon, nameType, Problem, useLoad } from "../ui";
import { Correct, CorrectionList } from "./corrections";

export type Shown = { kind: "entity" | "fact"; key: number } | { kind: "pair"; key: number; other: number } | null;
export interface Neighbour extends Entity {
  facts: SharedFact[];
}
interface Detail extends Entity {
  attributes: Record<string, string>;
  support: number;
  facts: { text: string; relation: string; doc: string; title: string; chunk: string; start: number; end: number }[];
}
interface FactDetail {
  key: number;
  text: string;
  relation: string;
  description: string;
  entities: Entity[];
  evidence: (Citation & { title: string })[];
}
interface Props {
  shown: Shown;
  found: Overview | null;
  onSelect: (key: number) => void;
  onExpand: (entity: { key: number; name: string; type: string }) => void;
  onFact: (key: number) => void;
  onPair: (one: number, other: number) => void;
  onRead: (place: Citation) => void;
  onClear: () => void;
  onChanged: () => void;
  /** What its lines to these neighbours say. */
  onLines: (key: number, neighbours: Neighbour[]) => void;
}

export function Inspect(props: Props) {
  const [made, setMade] = useState(0);
  const changed = () => {
    props.onChanged();
    void refreshStatus();
  };
  const corrected = () => {
    setMade(made + 1);
    changed();
  };
  const { shown } = props;
  return (
    <>
      {shown && (
        <div>
          <button class="quiet" onClick={props.onClear} title="Esc">
            ← {t("Overview")}
          </button>
        </div>
      )}
      {shown?.kind === "entity" && <EntityDetail key={shown.key} id={shown.key} {...props} onCorrected={corrected} />}
      {shown?.kind === "fact" && <FactView key={shown.key} id={shown.key} {...props} />}
      {shown?.kind === "pair" && <PairView key={`${shown.key} ${shown.other}`} one={shown.key} other={shown.other} {...props} />}
      {!shown && mayWrite() && <CorrectionList made={made} onUndone={changed} />}
      {!shown && props.found && <Summary {...props} found={props.found} />}
    </>
  );
}

/** The heading of what was chosen: it gets the focus, so that a keyboard and a reader go on there. */
function Heading({ children }: { children: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return (
    <h2 ref={heading} tabIndex={-1}>
      {children}
    </h2>
  );
}

function Summary({ found, onSelect }: Props & { found: Overview }) {
  return (
    <>
      <p class="soft small">{t("{n} of {all} entities are drawn. Choose one to see what is known.", { n: found.nodes.length.toLocaleString(), all: found.all.toLocaleString() })}</p>
      {isCrowded(found) && <p class="soft small">{t("With so many lines a click on one opens nothing; choose an entity to see what links it.")}</p>}
      {found.communities.length > 0 && (
        <div class="group">
          <h2 class="label">{t("Communities")}</h2>
          {found.communities.slice(0, 12).map((one, n) => (
            <details key={n}>
              <summary>
                <span class="dot" style={{ background: colourOf(n) }} /> {one.name || t("Community {n}", { n: n + 1 })} <span class="small soft">{one.size}</span>
              </summary>
              <p class="small pad">{dropMarks(one.summary)}</p>
            </details>
          ))}
        </div>
      )}
      <div class="group">
        <h2 class="label">{t("Most connected")}</h2>
        <ul class="facts">
          {found.nodes.slice(0, 25).map((one) => (
            <li key={one.key}>
              <button class="plain" onClick={() => onSelect(one.key)}>
                {one.name}
              </button>
              <span class="small soft">
                {nameType(one.type)} · {tn(one.facts, "1 fact", "{n} facts")}
              </span>
            </li>
          ))}
        </ul>
      </div>
    </>
  );
}

const FACTS = 50; // of an entity that are listed at first

function EntityDetail({ id, onExpand, onSelect, onFact, onPair, onRead, onCorrected, onLines }: Props & { id: number; onCorrected: () => void }) {
  const { workspace } = useShared();
  const [entity, error] = useLoad(() => get<Detail>(at(workspace, `/entities/${id}`)), [id, workspace]);
  const [near] = useLoad(() => get<{ neighbours: Neighbour[] }>(at(workspace, `/entities/${id}/neighbours`, { limit: 30 })), [id, workspace]);
  const [most, setMost] = useState(FACTS);
  useEffect(() => void (near && onLines(id, near.neighbours)), [near]);
  if (!entity) return error ? <Problem error={error} /> : <div class="loading" role="status" aria-label={t("Loading")} />;
  return (
    <>
      <div>
        <Heading>{entity.name}</Heading>
        <p class="soft small">
          {[nameType(entity.type), tn(entity.support, "1 passage", "{n} passages"), ...entity.aliases].filter(Boolean).join(" · ")}
        </p>
        {entity.description && <p>{dropMarks(entity.description)}</p>}
        <Attributes of={entity.attributes} />
      </div>
      <div class="row">
        <button class="quiet" onClick={() => onExpand({ ...entity, key: id })}>
          <Icon name="graph" /> {t("Expand")}
        </button>
      </div>
      {mayWrite() && <Correct entity={entity} onDone={onCorrected} />}
      <div class="group">
        <h2 class="label">{t("Facts")}</h2>
        <ul class="facts">
          {entity.facts.slice(0, most).map((fact, n) => (
            <li key={n}>
              <span>
                {fact.relation && <b>{fact.relation}: </b>}
                {dropMarks(fact.text)}
              </span>
              {fact.doc && (
                <button class="plain small soft" onClick={() => onRead({ ...fact, quote: fact.text })}>
                  {fact.title || fact.doc}
                </button>
              )}
            </li>
          ))}
        </ul>
        {entity.facts.length > most && (
          <p class="row small soft">
            {t("{n} of {all} facts are listed.", { n: most, all: entity.facts.length.toLocaleString() })}
            <button class="quiet" onClick={() => setMost(most + 4 * FACTS)}>
              {t("Show more")}
            </button>
          </p>
        )}
      </div>
      {near && near.neighbours.length > 0 && (
        <div class="group">
          <h2 class="label">{t("Neighbours")}</h2>
          <ul class="facts">
            {near.neighbours.map((one) => (
              <li key={one.key}>
                <button class="plain" onClick={() => onSelect(one.key)}>
                  {one.name}
                </button>
                {one.facts[0] && (
                  <button class="plain small soft" onClick={() => onFact(one.facts[0]!.key)}>
                    {describeShared(one.facts[0])}
                  </button>
                )}
                {one.facts.length > 1 && (
                  <button class="plain small" onClick={() => onPair(id, one.key)}>
                    {t("all {n} facts", { n: one.facts.length })}
                  </button>
                )}
              </li>
            ))}
          </ul>
        </div>
      )}
    </>
  );
}

/** Everything behind one line: the facts that two entities share, those that name both first. */
function PairView({ one, other, onSelect, onFact }: Props & { one: number; other: number }) {
  const { workspace } = useShared();
  const [found, error] = useLoad(() => get<{ neighbours: Neighbour[] }>(at(workspace, `/entities/${one}/neighbours`, { other })), [one, other, workspace]);
  const [first] = useLoad(() => get<Entity>(at(workspace, `/entities/${one}`)), [one, workspace]);
  const near = found?.neighbours[0];
  if (!near || !first) return found && !near ? <p class="soft">{t("They share no fact.")}</p> : <Problem error={error} />;
  return (
    <>
      <Heading>
        <button class="plain" onClick={() => onSelect(one)}>
          {first.name}
        </button>
        {" – "}
        <button class="plain" onClick={() => onSelect(other)}>
          {near.name}
        </button>
      </Heading>
      <div class="group">
        <h2 class="label">{t("Evidence")}</h2>
        <ul class="facts">
          {near.facts.map((fact) => (
            <li key={fact.key}>
              <button class="plain" onClick={() => onFact(fact.key)}>
                {describeShared(fact)}
              </button>
            </li>
          ))}
        </ul>
      </div>
    </>
  );
}

function FactView({ id, onSelect, onRead }: Props & { id: number }) {
  const { workspace } = useShared();
  const [fact, error] = useLoad(() => get<FactDetail>(at(workspace, `/facts/${id}`)), [id, workspace]);
  if (!fact) return <Problem error={error} />;
  return (
    <>
      <div>
        <h2 class="label">{t("Fact")}</h2>
        <Heading>{fact.relation || dropMarks(fact.text)}</Heading>
        {fact.relation && <p>{dropMarks(fact.text)}</p>}
        {fact.description && <p class="soft">{dropMarks(fact.description)}</p>}
      </div>
      <div class="group">
        <h2 class="label">{t("Evidence")}</h2>
        <ul class="facts">
          {fact.evidence.map((one, n) => (
            <li key={n}>
              <button class="plain" onClick={() => onRead(one)}>
                “{dropMarks(one.quote)}”
              </button>
              <span class="small soft">{one.title || one.doc}</span>
            </li>
          ))}
        </ul>
      </div>
      <div class="group">
        <h2 class="label">{t("Entities")}</h2>
        <div class="row">
          {fact.entities.map((one) => (
            <button key={one.key} class="chip" onClick={() => onSelect(one.key)}>
              {one.name}
            </button>
          ))}
        </div>
      </div>
    </>
  );
}

interface PathFound {
  entities: Entity[];
  facts: SharedFact[];
  more: SharedFact[][];
}
interface PathProps {
  onPath: (entities: Entity[], facts: SharedFact[]) => void;
  onFact: (key: number) => void;
  onPair: (one: number, other: number) => void;
}
export function PathForm(props: PathProps) {
  const { workspace } = useShared();
  const [start, setStart] = useState("");
  const [end, setEnd] = useState("");
  const [paths, setPaths] = useState<PathFound[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const edit = (set: (name: string) => void) => (name: string) => (set(name), setPaths(null), setError(null));
  const submit = async (event: Event) => {
    event.preventDefault();
    setPaths(null);
    try {
      const [from, to] = await Promise.all([findEntity(workspace, start), findEntity(workspace, end)]);
      setStart(from.name);
      setEnd(to.name);
      if (from.key === to.key) throw new Error(t("Both are the same entity. Choose two different ones."));
      const found = (await get<{ paths: PathFound[] }>(at(workspace, "/paths", { start: from.name, end: to.name, hops: 5 }))).paths;
      setPaths(found);
      setError(null);
      if (found[0]) props.onPath(found[0].entities, found[0].facts);
    } catch (problem) {
      setError(problem);
    }
  };
  return (
    <details class="path">
      <summary>{t("Path between two entities")}</summary>
      <form class="fields" onSubmit={(e) => void submit(e)}>
        <EntityField id="path-from" label={t("From")} value={start} onChange={edit(setStart)} />
        <EntityField id="path-to" label={t("To")} value={end} onChange={edit(setEnd)} />
        <button class="quiet">{t("Find the path")}</button>
        <Problem error={error} />
        {paths && paths.length === 0 && <p class="soft">{t("No path was found within five facts.")}</p>}
        {paths?.slice(0, 5).map((path, n) => (
          <div key={n} class="shared">
            {path.entities.map((one, i) => (
              <div key={i}>
                <b>{one.name}</b>
                {path.facts[i] && (
                  <p>
                    <button type="button" class="plain small soft" onClick={() => props.onFact(path.facts[i]!.key)}>
                      {describeShared(path.facts[i])}
                    </button>
                    {path.more[i]!.length > 0 && (
                      <button type="button" class="plain small" onClick={() => props.onPair(one.key, path.entities[i + 1]!.key)}>
                        {t("all {n} facts", { n: path.more[i]!.length + 1 })}
                      </button>
                    )}
                  </p>
                )}
              </div>
            ))}
          </div>
        ))}
      </form>
    </details>
  );
}
