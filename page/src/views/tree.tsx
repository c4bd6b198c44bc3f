// Tree: communities of the knowledge tree as a treemap and as an outline down to facts.
import { useEffect, useRef, useState } from "preact/hooks";
import { at, get, post, type Job } from "../api";
import { colourOf } from "../graph/colours";
import { t } from "../i18n";
import { useJob } from "../jobs";
import { linkTo, mayWrite, refreshStatus, toast, useShared } from "../state";
import { layOutTreemap, type Box } from "../treemap";
import { Attributes, describe, Empty, nameType, Problem, useLoad } from "../ui";

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

const NOTHING = Promise.resolve(null);

export function Tree() {
  const { workspace, status } = useShared();
  const trees = Object.keys(status?.trees ?? {});
  const [chosen, setChosen] = useState("");
  const [id, setId] = useState<string | null>(null);
  const [job, progress] = useJob(workspace, id);
  const [outline, error, reload] = useLoad<Outline | null>(
    () => (trees.length ? get<Outline>(at(workspace, "/tree", { tree: chosen, depth: 4, most: 40 })) : NOTHING),
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
          {job?.state === "failed" && <p class="wrong">{job.error}</p>}
        </Empty>
      ) : (
        <Problem error={error} onRetry={reload} />
      )}
      {outline && !missing && (
        <>
          <p class="soft">{t("{n} communities; levels: {levels}", { n: outline.communities, levels: outline.levels.length })}</p>
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
  const boxes = layOutTreemap(branches.map((one) => one.size), width, HEIGHT);
  const show = (branch: Branch) => {
    const element = document.getElementById(`branch-${branch.id}`);
    if (element instanceof HTMLDetailsElement) element.open = true;
    element?.scrollIntoView({ block: "center", behavior: "smooth" });
  };
  return (
    <svg ref={drawing} class="treemap card" viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={t("Communities by size; the outline below holds the same.")}>
      {boxes.map((box, n) => {
        const branch = branches[n]!;
        const room = Math.floor((box.width - 18) / 8.6);
        return (
          <svg key={branch.id} x={box.x} y={box.y} width={box.width} height={box.height} onClick={() => show(branch)}>
            <rect width={box.width} height={box.height} rx={8} fill={colourOf(n)} />
            {room > 3 && box.height > 24 && (
              <text x={10} y={22}>
                {branch.name.length > room ? `${branch.name.slice(0, room - 1)}…` : branch.name}
              </text>
            )}
            <Inner branch={branch} box={box} />
            <title>{`${branch.name} (${branch.size})`}</title>
          </svg>
        );
      })}
    </svg>
  );
}

/** What a community holds: those below it, or at the lowest level its keywords. */
function Inner({ branch, box }: { branch: Branch; box: Box }) {
  if (box.width < 90 || box.height < 90) return null;
  const parts = branch.below.length ? branch.below : branch.keywords.map((one) => ({ name: one.name, size: 1 + one.facts.length }));
  const inner = layOutTreemap([...parts.map((one) => one.size)].sort((a, b) => b - a), box.width - 16, box.height - 42);
  return (
    <>
      {[...parts]
        .sort((a, b) => b.size - a.size)
        .map((part, n) => {
          const { x, y, width, height } = inner[n]!;
          const room = Math.floor((width - 16) / 6.9);
          return (
            <svg key={n} x={8 + x} y={34 + y} width={width} height={height}>
              <rect class="inner" x={2} y={2} width={Math.max(0, width - 4)} height={Math.max(0, height - 4)} rx={5} />
              {room > 3 && height > 22 && (
                <text class="inner-text" x={9} y={18}>
                  {part.name.length > room ? `${part.name.slice(0, room - 1)}…` : part.name}
                </text>
              )}
            </svg>
          );
        })}
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
            {one.summary && <p class="soft">{one.summary}</p>}
            {one.keywords.length > 0 && (
              <ul class="outline">
                {one.keywords.map((word) => (
                  <li key={word.name}>
                    <a href={linkTo("graph", { name: word.name })}>{word.name}</a> <span class="small soft">{nameType(word.type)}</span>
                    <Attributes of={word.attributes} />
                    {word.facts.map((fact, f) => (
                      <p key={f} class="small">
                        {fact}
                      </p>
                    ))}
                  </li>
                ))}
              </ul>
            )}
            {one.below.length > 0 && <Branches branches={one.below} />}
          </details>
        </li>
      ))}
    </ul>
  );
}
