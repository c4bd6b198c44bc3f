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
// Letters that are about twice as wide as those of the Latin script.
const WIDE = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uff60]/u;
/** The beginning of a text that has the width of so many Latin letters. */
function take(text: string, most: number): string {
  let taken = "";
  for (const letter of text) {
    most -= WIDE.test(letter) ? 1.9 : 1;
    if (most < 0) break;
    taken += letter;
  }
  return taken;
}
const clip = (text: string, most: number): string => (take(text, most) === text ? text : `${take(text, most - 1)}…`);

/** Breaks a text into at most two lines of about the same room. */
export function wrap(text: string, most: number): string[] {
  const first = take(text, most);
  if (first === text) return [text];
  const space = text.lastIndexOf(" ", first.length);
  const cut = space > first.length / 2 ? space : first.length;
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
