// Tree: communities of the knowledge tree as a treemap and as an outline down to facts.
import { useEffect, useRef, useState } from "preact/hooks";
import { at, get, post, type Job } from "../api";
import { colourOf } from "../graph/colours";
import { t, translateMessage } from "../i18n";
import { useJob } from "../jobs";
import { dropMarks } from "../markup";
import { linkTo, mayWrite, refreshStatus, toast, useShared } from "../state";
import { layOutTreemap, wrapLabel, type Box } from "../treemap";
import { Attributes, describe, Empty, nameType, Problem, useLoad, Words } from "../ui";

interface Keyword {
  name: string;
  type: string;
  facts: string[];
  attributes: Record<string, string>;
}
interface Branch {
  id: string;
  name: string;
  level: number;
  size: number;
  summary: string;
  keywords: Keyword[];
  below: Branch[];
}
interface Outline {
  tree: string;
  communities: number;
  levels: number[];
  branches: Branch[];
}

const MOST = 40; // branches of one community, and of the top
const NOTHING = Promise.resolve(null);

export function Tree() {
  const { workspace, status } = useShared();
  const trees = Object.keys(status?.trees ?? {});
  const [chosen, setChosen] = useState("");
  const [id, setId] = useState<string | null>(null);
  const [job, progress] = useJob(workspace, id);
  const [outline, error, reload] = useLoad<Outline | null>(
    () => (trees.length ? get<Outline>(at(workspace, "/tree", { tree: chosen, depth: 4, most: MOST })) : NOTHING),
    [workspace, chosen, status?.generation, trees.join()],
  );
  const missing = status !== null && trees.length === 0;
  useEffect(() => {
    if (job?.state === "done") void refreshStatus();
  }, [job?.state]);
  const grow = async () => {
    setId((await post<Job>(at(workspace, "/trees"), { trees: ["dual"] })).id);
  };
  const running = job && !["done", "failed", "cancelled"].includes(job.state);
  return (
    <div class="page">
      <div class="row spread">
        <h1>{t("Tree")}</h1>
        {trees.length > 1 && (
          <select aria-label={t("Which tree")} value={chosen || outline?.tree} onChange={(e) => setChosen(e.currentTarget.value)}>
            {trees.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        )}
      </div>
      {missing ? (
        <Empty title={t("No tree was built yet")}>
          <p>{t("A tree groups entities into communities, with a summary for each.")}</p>
          {running ? (
            <p role="status">
              {t(job.state)} {progress && `${t(progress.stage)} ${progress.done} / ${progress.total}`}
            </p>
          ) : (
            mayWrite() && (
              <button class="main" onClick={() => void grow().catch((e) => alertProblem(e))}>
                {t("Build the tree")}
              </button>
            )
          )}
          {job?.state === "failed" && <p class="wrong"><Words text={translateMessage(job.error)} /></p>}
        </Empty>
      ) : (
        <Problem error={error} onRetry={reload} />
      )}
      {outline && !missing && (
        <>
          <p class="soft">
            {t("{n} communities; levels: {levels}", { n: outline.communities, levels: outline.levels.length })}
            {outline.branches.length === MOST && ` · ${t("the {n} largest are shown", { n: MOST })}`}
          </p>
          <Treemap branches={outline.branches} />
          <section class="panel">
            <h2>{t("Outline")}</h2>
            <Branches branches={outline.branches} top />
          </section>
        </>
      )}
    </div>
  );
}
const alertProblem = (error: unknown): void => toast(describe(error));

const WIDEST = 1000; // from there on the drawing is enlarged
const HEIGHT = 420;
function Treemap({ branches }: { branches: Branch[] }) {
  const drawing = useRef<SVGSVGElement>(null);
  const [width, setWidth] = useState(WIDEST);
  useEffect(() => {
    const element = drawing.current!;
    const measure = () => setWidth(Math.min(WIDEST, Math.max(200, Math.round(element.clientWidth))));
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const places = placeParts(branches, width, HEIGHT, SMALLEST_TOP);
  const show = (branch: Branch) => {
    const element = document.getElementById(`branch-${branch.id}`);
    if (element instanceof HTMLDetailsElement) element.open = true;
    element?.scrollIntoView({ block: "center", behavior: "smooth" });
  };
  return (
    <svg ref={drawing} class="treemap card" viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={t("Communities by size; the outline below holds the same.")}>
      {places.map(([branch, box]) => {
        const nested = box.width >= 90 && box.height >= 90;
        return (
          <svg key={branch.id} x={box.x} y={box.y} width={box.width} height={box.height} onClick={() => show(branch)}>
            <rect width={box.width} height={box.height} rx={8} fill={colourOf(branches.indexOf(branch))} />
            <Label text={branch.name} x={10} y={22} room={box.width - 16} height={nested ? 28 : box.height} size={13} />
            {nested && <Inner branch={branch} box={box} />}
            <title>{`${branch.name} (${branch.size})`}</title>
          </svg>
        );
      })}
    </svg>
  );
}

interface LabelProps {
  text: string;
  x: number;
  y: number;
  room: number;
  height: number;
  size: number;
  inner?: boolean;
}
/** A name in as many lines as there is room for; nothing where no word would be readable. */
function Label({ text, x, y, room, height, size, inner = false }: LabelProps) {
  const letters = Math.floor(room / (size * (inner ? 0.62 : 0.7)));
  const step = size * 1.3;
  const most = Math.floor((height - y - 5) / step) + 1;
  if (letters < 5 || most < 1) return null;
  return (
    <text class={inner ? "inner-text" : ""}>
      {wrapLabel(text, letters, most).map((line, n) => (
        <tspan key={n} x={x} y={y + n * step}>
          {line}
        </tspan>
      ))}
    </text>
  );
}

// Pixels in which a word can be read.
const SMALLEST: [number, number] = [52, 26];
const SMALLEST_TOP: [number, number] = [64, 34];
/** The largest parts, as many as can be named in the room there is. */
function placeParts<T extends { size: number }>(parts: T[], width: number, height: number, [wide, high] = SMALLEST): [T, Box][] {
  const sorted = [...parts].sort((a, b) => b.size - a.size);
  for (let most = sorted.length; most > 0; most--) {
    const kept = sorted.slice(0, most);
    const boxes = layOutTreemap(kept.map((one) => one.size), width, height);
    if (boxes.every((box) => box.width >= wide && box.height >= high)) return kept.map((one, n) => [one, boxes[n]!]);
  }
  return [];
}
/** What a community holds: those below it, or at the lowest level its keywords. */
function Inner({ branch, box }: { branch: Branch; box: Box }) {
  const parts = branch.below.length ? branch.below : branch.keywords.map((one) => ({ name: one.name, size: 1 + one.facts.length }));
  return (
    <>
      {placeParts<{ name: string; size: number }>(parts, box.width - 16, box.height - 42).map(([part, { x, y, width, height }], n) => (
        <svg key={n} x={8 + x} y={34 + y} width={width} height={height}>
          <rect class="inner" x={2} y={2} width={Math.max(0, width - 4)} height={Math.max(0, height - 4)} rx={5} />
          <Label text={part.name} x={8} y={17} room={width - 13} height={height} size={11} inner />
        </svg>
      ))}
    </>
  );
}

function Branches({ branches, top = false }: { branches: Branch[]; top?: boolean }) {
  return (
    <ul class="outline">
      {branches.map((one, n) => (
        <li key={one.id}>
          <details id={`branch-${one.id}`} open={top && n === 0}>
            <summary>
              {top && <span class="dot" style={{ background: colourOf(n) }} />} {one.name || one.id} <span class="small soft">{one.size}</span>
            </summary>
            {one.summary && <p class="soft">{dropMarks(one.summary)}</p>}
            {one.keywords.length > 0 && (
              <ul class="outline">
                {one.keywords.map((word) => (
                  <li key={word.name}>
                    <a href={linkTo("graph", { name: word.name })}>{word.name}</a> <span class="small soft">{nameType(word.type)}</span>
                    <Attributes of={word.attributes} />
                    {word.facts.map((fact, f) => (
                      <p key={f} class="small">
                        {dropMarks(fact)}
                      </p>
                    ))}
                  </li>
                ))}
              </ul>
            )}
            {one.keywords.length > 0 && one.keywords.length < one.size && (
              <p class="small soft">{t("{n} of {all} entities are listed, the most central ones.", { n: one.keywords.length, all: one.size.toLocaleString() })}</p>
            )}
            {one.below.length > 0 && <Branches branches={one.below} />}
          </details>
        </li>
      ))}
    </ul>
  );
}
