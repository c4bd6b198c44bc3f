// The page of `clew export graph.html`: one file with the graph in it, drawn by the same parts as the server's page.
import { render } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { countTypes, GraphCanvas } from "./graph/canvas";
import { Find } from "./find";
import { colourOf } from "./graph/colours";
import { LocalLayout } from "./graph/layout";
import { dropMarks } from "./markup";
import { describeMissing, findNodes } from "./names";
import "./style.css";

interface Source {
  doc: string;
  start: number;
  end: number;
  quote: string;
}
interface Exported {
  title: string;
  all: number;
  nodes: { name: string; type: string; description: string; degree: number; aliases: string[]; attributes: Record<string, string>; community: number }[];
  edges: [number, number, number][];
  facts: { text: string; relation: string; nodes: number[]; cited: Source[] }[];
  communities: { name: string; summary: string; size: number }[];
}
type Node = Exported["nodes"][number];

function Page({ graph }: { graph: Exported }) {
  const { nodes } = graph;
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<GraphCanvas | null>(null);
  const [chosen, setChosen] = useState(-1);
  const [hidden, setHidden] = useState(new Set<string>());
  const [broken, setBroken] = useState("");
  const types = useMemo(() => countTypes(nodes.map(toOverview)), [graph]);
  const choose = (n: number) => {
    setChosen(n);
    canvas.current?.select(n < 0 ? null : n);
    if (n >= 0) void canvas.current?.lookAt(n);
  };
  useEffect(() => {
    let made: GraphCanvas;
    try {
      made = new GraphCanvas(box.current!, new LocalLayout());
    } catch (problem) {
      const why = problem instanceof Error ? problem.message : String(problem);
      setBroken(why === "WebGL" ? "This browser has no WebGL, so nothing is drawn; the lists hold the same." : why);
      const named = nodes.findIndex((one) => one.name === decodeURIComponent(location.hash.slice(1)));
      return setChosen(named);
    }
    canvas.current = made;
    made.onNode = choose;
    made.onNothing = () => choose(-1);
    made.load({ all: graph.all, nodes: nodes.map(toOverview), edges: graph.edges, communities: graph.communities });
    made.setColours("type");
    const named = nodes.findIndex((one) => one.name === decodeURIComponent(location.hash.slice(1)));
    if (named >= 0) choose(named);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const look = () => made.setTheme();
    dark.addEventListener("change", look);
    return () => (dark.removeEventListener("change", look), made.close());
  }, []);
  useEffect(() => canvas.current?.setFilter(hidden, 0), [hidden]);
  const toggle = (type: string) => {
    const next = new Set(hidden);
    if (!next.delete(type)) next.add(type);
    setHidden(next);
  };
  return (
    <main class="graph exported" onKeyDown={(e) => e.key === "Escape" && !e.defaultPrevented && chosen >= 0 && choose(-1)}>
      <div class="stage">
        <div class="canvas" ref={box} tabIndex={0} role="application" aria-label="The graph: arrow keys move it, + and − zoom, 0 fits it. The list beside it holds the same." onKeyDown={(e) => canvas.current?.press(e.key) && e.preventDefault()} />
        <div class="tools">
          <FindNode graph={graph} onChoose={choose} />
          <span class="small soft pill">{nodes.length < graph.all ? `${nodes.length} of ${graph.all} entities` : `${nodes.length} entities`}</span>
        </div>
        <div class="legend">
          {types.length > 1 &&
            types.slice(0, 14).map(([type, count], n) => (
              <button key={type} aria-pressed={!hidden.has(type)} onClick={() => toggle(type)}>
                <span class="dot" style={{ background: colourOf(n) }} /> {type || "untyped"} {count}
              </button>
            ))}
        </div>
      </div>
      <section class="inspect" aria-label="Details" tabIndex={0}>
        {broken && (
          <p class="problem" role="alert">
            {broken}
          </p>
        )}
        {chosen < 0 ? <Most graph={graph} onChoose={choose} /> : <Detail graph={graph} n={chosen} onChoose={choose} />}
      </section>
    </main>
  );
}
const toOverview = (one: Node, n: number) => ({ key: n, name: one.name, type: one.type, facts: one.degree, community: one.community });

function FindNode({ graph, onChoose }: { graph: Exported; onChoose: (n: number) => void }) {
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  const hits = open ? findNodes(graph.nodes, text) : [];
  const choose = (n: number) => (setText(graph.nodes[n]!.name), setOpen(false), onChoose(n));
  const missing = open && text.trim() && !hits.length ? describeMissing(graph.nodes.length, graph.all, text.trim()) : undefined;
  return (
    <Find
      label="Find a name"
      placeholder="Find a name"
      text={text}
      hits={hits.map((n) => ({ key: n, name: graph.nodes[n]!.name, type: graph.nodes[n]!.type }))}
      nothing={missing}
      onText={(said) => (setText(said), setOpen(true))}
      onChoose={({ key }) => choose(key)}
      onClose={() => (setText(""), setOpen(false))}
    />
  );
}

function Most({ graph, onChoose }: { graph: Exported; onChoose: (n: number) => void }) {
  const order = graph.nodes.map((_, n) => n).sort((a, b) => graph.nodes[b]!.degree - graph.nodes[a]!.degree);
  return (
    <>
      <h1 dir="auto">{graph.title}</h1>
      <p class="soft small">Click a node for its facts. Drag to move, scroll to zoom.</p>
      <ul class="facts">
        {order.slice(0, 40).map((n) => (
          <li key={n}>
            <button class="plain" dir="auto" onClick={() => onChoose(n)}>
              {graph.nodes[n]!.name}
            </button>
            <span class="small soft">
              {[graph.nodes[n]!.type, `${graph.nodes[n]!.degree} facts`].filter(Boolean).join(" · ")}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

function Detail({ graph, n, onChoose }: { graph: Exported; n: number; onChoose: (n: number) => void }) {
  const node = graph.nodes[n]!;
  const told = graph.facts.filter((fact) => fact.nodes.includes(n));
  const more = node.degree - told.length;
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus({ preventScroll: true }), [n]);
  return (
    <>
      <div>
        <button class="quiet" onClick={() => onChoose(-1)}>
          ← All
        </button>
        <h1 dir="auto" ref={heading} tabIndex={-1}>
          {node.name}
        </h1>
        <p class="soft small">{[node.type, node.degree === 1 ? "1 fact" : `${node.degree} facts`, ...node.aliases].filter(Boolean).join(" · ")}</p>
        {node.description && <p dir="auto">{node.description}</p>}
        {Object.entries(node.attributes).map(([name, value]) => (
          <p key={name} class="small soft" dir="auto">
            {name}: {value}
          </p>
        ))}
      </div>
      <ul class="facts">
        {told.map((fact, f) => (
          <li key={f}>
            <span dir="auto">
              {fact.relation && <b>{fact.relation}: </b>}
              {dropMarks(fact.text)}
            </span>
            {fact.cited.map((one, c) => (
              <span key={c} class="small soft" dir="auto">
                {one.quote && one.quote !== fact.text ? `“${dropMarks(one.quote)}” — ` : ""}
                {one.doc}, characters {one.start}–{one.end}
              </span>
            ))}
            <span class="row">
              {fact.nodes
                .filter((other) => other !== n)
                .map((other) => (
                  <button key={other} class="chip" dir="auto" onClick={() => onChoose(other)}>
                    {graph.nodes[other]!.name}
                  </button>
                ))}
            </span>
          </li>
        ))}
      </ul>
      {more > 0 && <p class="soft small">… and {more} more facts in the knowledge base</p>}
    </>
  );
}

const held = globalThis.document?.getElementById("graph");
if (held) {
  document.documentElement.dataset.theme = "auto";
  render(<Page graph={JSON.parse(held.textContent!) as Exported} />, document.getElementById("app")!);
}
