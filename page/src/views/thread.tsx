// The thread of an answer as a small drawing: entities on a line, the facts between them beside it.
import type { Citation } from "../api";
import { t } from "../i18n";
import { dropMarks } from "../markup";
import { linkTo } from "../state";
import type { Thread } from "../thread";

const STEP = 92;
const LEFT = 30;
const WIDTH = 360;
const swing = (n: number): number => LEFT + (n % 2 ? 16 : -6);
const clip = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

/** Breaks a text into at most two lines of about the same room. */
function wrap(text: string, most: number): string[] {
  if (text.length <= most) return [text];
  const space = text.lastIndexOf(" ", most);
  const cut = space > most / 2 ? space : most;
  return [text.slice(0, cut), clip(text.slice(cut).trim(), most)];
}

export function ThreadDrawing(props: { thread: Thread; live: boolean; onOpen: (cited: Citation) => void }) {
  const { nodes, edges } = props.thread;
  const height = nodes.length * STEP - 34;
  const y = (n: number) => 24 + n * STEP;
  const curve = edges
    .map((_, n) => `C ${swing(n) + 24} ${y(n) + 34}, ${swing(n + 1) - 24} ${y(n + 1) - 34}, ${swing(n + 1)} ${y(n + 1)}`)
    .join(" ");
  return (
    <svg
      class={props.live ? "thread live" : "thread"}
      viewBox={`0 0 ${WIDTH} ${height}`}
      role="group"
      aria-label={t("The path to the answer")}
    >
      <path class="line" pathLength={1} d={`M ${swing(0)} ${y(0)} ${curve}`} />
      {edges.map((edge, n) => {
        const said = dropMarks(edge.text).replace(/\s+/g, " ");
        const lines = wrap(said, edge.mark ? 42 : 44);
        const shown = (
          <text class="edge" x={74} y={y(n) + STEP / 2 - (lines.length > 1 ? 2 : -4)}>
            {lines.map((line, i) => (
              <tspan key={i} x={74} dy={i ? 15 : 0}>
                {edge.mark > 0 && i === 0 && (
                  <tspan class="mark">{edge.mark} </tspan>
                )}
                {line}
              </tspan>
            ))}
            <title>{said}</title>
          </text>
        );
        const { cited } = edge;
        if (!cited) return <g key={n}>{shown}</g>;
        return (
          <g
            key={n}
            class="open"
            role="button"
            tabIndex={0}
            aria-description={t("Open the source: {text}", { text: said })}
            onClick={() => props.onOpen(cited)}
            onKeyDown={(e) => (e.key === "Enter" || e.key === " ") && (e.preventDefault(), props.onOpen(cited))}
          >
            <rect class="hit" x={64} y={y(n) + 22} width={WIDTH - 68} height={44} rx={6} />
            {shown}
          </g>
        );
      })}
      {nodes.map((node, n) => {
        const last = n === nodes.length - 1;
        return (
          <g key={n} class={last ? "node last" : "node"}>
            <circle cx={swing(n)} cy={y(n)} r={last ? 9 : 7} />
            <a href={node.known ? linkTo("graph", { name: node.name }) : undefined}>
              <text x={swing(n) + 18} y={y(n) + 5}>
                {clip(node.name, 34)}
                <title>{node.name}</title>
              </text>
            </a>
          </g>
        );
      })}
    </svg>
  );
}
