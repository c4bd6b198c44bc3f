// The drawing of the graph: sigma on WebGL, regions of communities beneath, layout in a worker.
import Graph from "graphology";
import { EdgeLineProgram, EdgeRectangleProgram, NodeCircleProgram, NodePointProgram } from "sigma/rendering";
import { colourOf } from "./colours";
import { firstPosition, meetsAny, placeBox, type Circle, type Rectangle } from "./geometry";
import type { Layout, Moved } from "./layout";
import { SlidingSigma } from "./slide";
import type { NodeDisplayData, PartialButFor } from "sigma/types";

export interface OverviewNode {
  key: number;
  name: string;
  type: string;
  facts: number;
  community: number;
}
export interface Community {
  name: string;
  summary: string;
  size: number;
}
export interface Overview {
  all: number;
  nodes: OverviewNode[];
  edges: [number, number, number][];
  communities: Community[];
  /** Labels of documents, and when files were uploaded, in seconds. */
  labels?: string[];
  arrivals?: number[];
}
export type ColourBy = "type" | "community";

const CROWDED = 6000; // nodes and edges beyond which nobody could hit one line
/** Whether so much is drawn that a click finds no edge. */
export const isCrowded = ({ nodes, edges }: Pick<Overview, "nodes" | "edges">): boolean => nodes.length + edges.length > CROWDED;
interface Look {
  ink: string;
  soft: string;
  line: string;
  edge: string;
  paper: string;
  stage: string;
  thread: string;
}

/** The whole graph, with room at the right for the names of the outermost. */
const WHOLE = { x: 0.53, y: 0.5, ratio: 1.14 };
const LONG = 32; // letters of a name that are drawn
const MOST_AVOIDED = 200; // neighbours that the box with a name looks out for
const NAMED = 16; // lines of an entity that can be read beside each other
const FRAMED = 60; // neighbours that are brought into view with their entity

const readLook = (): Look => {
  const style = getComputedStyle(document.documentElement);
  const value = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return { ink: value("ink"), soft: value("soft"), line: value("line"), edge: value("edge"), paper: value("card"), stage: value("paper"), thread: value("thread") };
};

type Labelled = PartialButFor<NodeDisplayData, "x" | "y" | "size" | "label" | "color"> & { key?: string };
const cut = (label: string | null): string => (label && label.length > LONG ? `${label.slice(0, LONG - 1)}…` : (label ?? ""));

export class GraphCanvas {
  readonly graph = new Graph({ type: "undirected" });
  private sigma: SlidingSigma;
  private job = 0;
  private shrink = 1;
  private many = false;
  private look = readLook();
  private colours: ColourBy = "community";
  private types: string[] = [];
  private communities: Community[] = [];
  private hiddenTypes = new Set<string>();
  private oldest = 0;
  private selected = "";
  private near = new Set<string>();
  private path = new Set<string>();
  private regions: CanvasRenderingContext2D;
  private labelled: Rectangle[] = [];
  onNode: (key: number) => void = () => {};
  onEdge: (one: number, other: number) => void = () => {};
  onNothing: () => void = () => {};

  constructor(
    private container: HTMLElement,
    private worker: Layout,
  ) {
    if (!canDraw()) throw new Error("WebGL");
    this.sigma = new SlidingSigma(this.graph, container, {
      allowInvalidContainer: true,
      enableEdgeEvents: true,
      hideEdgesOnMove: false,
      labelFont: "system-ui, sans-serif",
      labelSize: 13 * this.scale(),
      labelDensity: 0.6,
      labelGridCellSize: 110 * this.scale(),
      labelRenderedSizeThreshold: 5,
      labelColor: { color: this.look.ink },
      zIndex: true,
      // Large graphs are drawn with hairlines and points, which are fewer corners to compute.
      edgeProgramClasses: { line: EdgeRectangleProgram, hair: EdgeLineProgram },
      nodeProgramClasses: { circle: NodeCircleProgram, point: NodePointProgram },
      nodeReducer: (node, data) => this.reduceNode(node, data),
      edgeReducer: (edge, data) => this.reduceEdge(edge, data),
      renderEdgeLabels: true,
      edgeLabelFont: "system-ui, sans-serif",
      edgeLabelSize: 11.5 * this.scale(),
      edgeLabelColor: { color: this.look.soft },
      defaultDrawNodeLabel: (context, data, settings) => this.drawLabel(context, data, settings.labelSize),
      defaultDrawNodeHover: (context, data, settings) => this.drawHover(context, data, settings.labelSize),
    });
    const layer = this.sigma.createCanvas("regions", { beforeLayer: "edges" });
    this.regions = layer.getContext("2d")!;
    this.sigma.on("beforeRender", () => void (this.labelled = []));
    this.sigma.on("afterRender", () => this.drawRegions(layer));
    this.sigma.watch();
    this.sigma.on("clickNode", ({ node }) => this.onNode(Number(node)));
    this.sigma.on("clickEdge", ({ edge }) => this.onEdge(Number(this.graph.source(edge)), Number(this.graph.target(edge))));
    this.sigma.on("enterNode", () => this.showHovers(true));
    this.sigma.on("clickStage", () => this.onNothing());
    this.worker.onmessage = (event: MessageEvent<Moved>) => this.move(event.data);
    this.sigma.background = this.look.stage;
  }
  close(): void {
    this.worker.terminate();
    this.sigma.kill();
  }
  private scale(): number {
    return parseFloat(getComputedStyle(document.documentElement).fontSize) / 16;
  }

  load(found: Overview): void {
    this.graph.clear();
    this.communities = found.communities;
    this.types = countTypes(found.nodes).map(([type]) => type);
    this.shrink = Math.min(1.4, Math.sqrt(800 / Math.max(1, found.nodes.length)));
    this.many = isCrowded(found);
    // Finding the edge under the pointer draws all edges twice; beyond this the lists beside have to do.
    this.sigma.setSetting("enableEdgeEvents", !this.many);
    this.sigma.setSetting("labelRenderedSizeThreshold", 5 * this.room());
    found.nodes.forEach((node, n) => {
      const [x, y] = firstPosition(n, node.community, found.communities.length);
      this.graph.addNode(node.key, { ...this.attributes(node), x, y });
    });
    for (const [one, other, fact] of found.edges)
      this.graph.mergeEdge(found.nodes[one]!.key, found.nodes[other]!.key, { fact });
    this.sigma.getCamera().setState({ ...WHOLE, angle: 0 });
    this.layOut();
  }
  /** Adds nodes around one that is shown; those that are shown already stay. */
  add(around: number, nodes: OverviewNode[], edges: [number, number, number][]): void {
    const centre = this.graph.hasNode(around) ? this.graph.getNodeAttributes(around) : { x: 0, y: 0 };
    nodes.forEach((node, n) => {
      if (this.graph.hasNode(node.key)) return;
      const [x, y] = firstPosition(n, -1, 1);
      this.graph.addNode(node.key, { ...this.attributes(node), x: centre.x + x, y: centre.y + y });
    });
    let added = false;
    for (const [one, other, fact] of edges)
      if (one !== other && !this.graph.hasEdge(one, other)) {
        this.graph.addEdge(one, other, { fact });
        added = true;
      }
    if (added) this.layOut(120);
  }
  private attributes(node: OverviewNode): Record<string, unknown> {
    const { name, type, community, facts } = node;
    const room = this.room();
    const size = Math.min(18, 3 + 1.6 * Math.sqrt(facts)) * Math.max(1, 1.15 * this.scale()) * room * Math.max(0.4, this.shrink);
    return { label: name, kind: type, community, size };
  }
  /** How much smaller nodes are in a narrow drawing. */
  private room(): number {
    return Math.min(1, Math.max(0.5, this.container.clientWidth / 700));
  }
  private layOut(rounds?: number): void {
    const names = this.graph.nodes();
    const number = new Map(names.map((name, n) => [name, n]));
    const xy = new Float32Array(names.length * 2);
    names.forEach((name, n) => {
      const { x, y } = this.graph.getNodeAttributes(name);
      xy.set([x, y], 2 * n);
    });
    const edges = new Uint32Array(this.graph.size * 2);
    let place = 0;
    this.graph.forEachEdge((_, __, one, other) => {
      edges.set([number.get(one)!, number.get(other)!], place);
      place += 2;
    });
    const wanted = rounds ?? (names.length > 3000 ? 60 : names.length > 800 ? 160 : 320);
    delete this.container.dataset.settled;
    this.worker.postMessage({ job: ++this.job, xy, edges, rounds: wanted }, [xy.buffer, edges.buffer]);
  }
  private move({ job, xy, done }: Moved): void {
    if (job !== this.job) return;
    let n = 0;
    this.graph.updateEachNodeAttributes((_, at) => {
      const moved = { ...at, x: xy[2 * n]!, y: xy[2 * n + 1]! };
      n++;
      return moved;
    }, { attributes: ["x", "y"] });
    if (!done) return;
    const chosen = this.selected;
    this.sigma.once("afterRender", () => {
      this.container.dataset.settled = "yes";
      if (chosen && chosen === this.selected) void this.lookAt(Number(chosen), true); // the layout has moved it
    });
  }

  setColours(by: ColourBy): void {
    this.colours = by;
    this.sigma.refresh();
  }
  setFilter(hiddenTypes: Set<string>, oldest: number): void {
    [this.hiddenTypes, this.oldest] = [hiddenTypes, oldest];
    this.sigma.refresh();
  }
  setTheme(): void {
    this.look = readLook();
    this.sigma.background = this.look.stage;
    this.sigma.setSetting("labelColor", { color: this.look.ink });
    this.sigma.setSetting("edgeLabelColor", { color: this.look.soft });
    this.sigma.refresh();
  }
  select(key: number | null): void {
    this.selected = key === null ? "" : String(key);
    const known = this.selected && this.graph.hasNode(this.selected);
    this.near = new Set(known ? this.graph.neighbors(this.selected) : []);
    this.showHovers(key !== null);
    this.sigma.refresh();
  }
  /** Chromium may go on showing a layer that was cleared and not drawn on since, so it is hidden. */
  private showHovers(shown: boolean): void {
    this.sigma.getCanvases().hovers!.style.visibility = shown ? "" : "hidden";
  }
  /** Keeps the relation of each line of an entity, by the key of its other end; it is written where there is room. */
  nameLines(key: number, said: Map<number, string>): void {
    for (const [other, text] of said) {
      const edge = this.graph.hasNode(key) && this.graph.hasNode(other) && this.graph.edge(key, other);
      if (edge) this.graph.setEdgeAttribute(edge, "said", cut(text));
    }
  }
  /** Lights the nodes and edges of a path; an empty list ends it. */
  lightPath(keys: number[]): void {
    this.path = new Set(keys.map(String));
    for (let n = 1; n < keys.length; n++) {
      const edge = this.graph.edge(String(keys[n - 1]), String(keys[n]));
      if (edge) this.path.add(`edge ${edge}`);
    }
    this.sigma.refresh();
  }
  /** Moves to a node, near enough for it and its neighbours; `framed` moves away for them, too. */
  async lookAt(key: number, framed = false): Promise<void> {
    const data = this.sigma.getNodeDisplayData(String(key));
    if (!data) return;
    let far = 0.25;
    if (this.near.size <= FRAMED)
      for (const one of this.near) {
        const other = this.sigma.getNodeDisplayData(one);
        if (other) far = Math.max(far, Math.abs(other.x - data.x), Math.abs(other.y - data.y));
      }
    const camera = this.sigma.getCamera();
    const wanted = Math.min(WHOLE.ratio, 2.3 * far);
    await camera.animate({ x: data.x, y: data.y, ratio: framed ? wanted : Math.min(camera.ratio, wanted) }, { duration: 350 });
  }
  zoom(by: number): void {
    const camera = this.sigma.getCamera();
    void camera.animate({ ratio: camera.ratio * by }, { duration: 200 });
  }
  /** Moves the view by shares of its own width. */
  pan(right: number, up: number): void {
    const camera = this.sigma.getCamera();
    void camera.animate({ x: camera.x + right * camera.ratio, y: camera.y + up * camera.ratio }, { duration: 120 });
  }
  /** What a key does with the drawing; false for one that does nothing. */
  press(key: string): boolean {
    const moves: Record<string, () => void> = {
      ArrowLeft: () => this.pan(-0.15, 0),
      ArrowRight: () => this.pan(0.15, 0),
      ArrowUp: () => this.pan(0, 0.15),
      ArrowDown: () => this.pan(0, -0.15),
      "+": () => this.zoom(0.7),
      "=": () => this.zoom(0.7),
      "-": () => this.zoom(1.4),
      "0": () => this.fit(),
    };
    moves[key]?.();
    return key in moves;
  }
  fit(): void {
    void this.sigma.getCamera().animate(WHOLE, { duration: 250 });
  }

  private reduceNode(node: string, data: Record<string, unknown>): Partial<NodeDisplayData> {
    const group = this.colours === "type" ? this.types.indexOf(String(data.kind)) : Number(data.community);
    const shown: Partial<NodeDisplayData> = { ...data, color: colourOf(group), type: this.many ? "point" : "circle" };
    if (this.hiddenTypes.has(String(data.kind)) || Number(node) < this.oldest) return { ...shown, hidden: true };
    if (this.path.size) {
      if (this.path.has(node)) return { ...shown, color: this.look.thread, forceLabel: true, zIndex: 2 };
      return { ...shown, color: this.look.line, label: "" };
    }
    if (node === this.selected) return { ...shown, highlighted: true, forceLabel: true, zIndex: 2 };
    if (this.selected && !this.near.has(node)) return { ...shown, color: this.look.line, label: "" };
    return this.selected ? { ...shown, forceLabel: this.near.size < 40, zIndex: 1 } : shown;
  }
  private reduceEdge(edge: string, data: Record<string, unknown>): Record<string, unknown> {
    const quiet = { ...data, color: this.look.edge, size: Math.max(1, 1.4 * this.scale()), type: this.many ? "hair" : "line" };
    const named = { label: String(data.said ?? ""), forceLabel: Boolean(data.said) };
    if (this.path.size) return this.path.has(`edge ${edge}`) ? { ...data, ...named, color: this.look.thread, size: 4, zIndex: 2 } : quiet;
    if (!this.selected) return quiet;
    const own = this.graph.extremities(edge).includes(this.selected);
    const legible = this.near.size <= NAMED ? named : {};
    return own ? { ...data, ...legible, color: this.look.thread, size: 1.8, zIndex: 1 } : { ...quiet, hidden: this.graph.order > 300 };
  }
  /** Writes a name right of its node, or left of it where it would not fit; none over another. */
  private drawLabel(context: CanvasRenderingContext2D, data: Labelled, size: number): void {
    if (data.key === this.selected) return; // its name stands in a box
    if (this.selected && !this.labelled.length) this.keepBoxFree(context, size);
    const shown = cut(data.label);
    context.font = `${size}px system-ui, sans-serif`;
    const width = context.measureText(shown).width;
    const [right, left] = [data.x + data.size + 3, data.x - data.size - 3 - width];
    const place = (x: number): Rectangle => ({ x, y: data.y - size / 2, width, height: size + 2 });
    const fits = (x: number) => x >= 0 && x + width <= this.sigma.getDimensions().width && !meetsAny(this.labelled, place(x));
    const needed = (data.zIndex ?? 0) > 1;
    const x = [right, left].find(fits) ?? (needed ? right : null);
    if (x === null) return;
    this.labelled.push(place(x));
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.strokeStyle = this.look.stage;
    context.strokeText(shown, x, data.y + size / 3);
    context.fillStyle = this.look.ink;
    context.fillText(shown, x, data.y + size / 3);
  }
  /** Writes the name of the chosen node in a box beside it, where it covers none of its neighbours. */
  private drawHover(context: CanvasRenderingContext2D, data: Labelled, size: number): void {
    const box = this.boxOf(context, data, size);
    context.fillStyle = this.look.paper;
    context.strokeStyle = this.look.thread;
    context.lineWidth = 1.5;
    context.beginPath();
    context.roundRect(box.x, box.y, box.width, box.height, 6);
    context.fill();
    context.stroke();
    context.beginPath();
    context.arc(data.x, data.y, data.size + 3, 0, 2 * Math.PI);
    context.stroke();
    context.fillStyle = this.look.ink;
    context.fillText(cut(data.label), box.x + 7, box.y + box.height / 2 + size / 3);
  }
  /** Other names keep away from the box of the chosen one. */
  private keepBoxFree(context: CanvasRenderingContext2D, size: number): void {
    const data = this.sigma.getNodeDisplayData(this.selected);
    if (!data) return;
    const at = { ...data, ...this.sigma.framedGraphToViewport(data), size: this.sigma.scaleSize(data.size) };
    this.labelled.push(this.boxOf(context, { ...at, key: this.selected }, size));
  }
  private boxOf(context: CanvasRenderingContext2D, data: Labelled, size: number): Rectangle {
    context.font = `600 ${size}px system-ui, sans-serif`;
    const width = context.measureText(cut(data.label)).width + 14;
    const near = this.graph.neighbors(data.key).slice(0, MOST_AVOIDED).flatMap((one): Circle[] => {
      const shown = this.sigma.getNodeDisplayData(one);
      return shown && !shown.hidden ? [{ ...this.sigma.framedGraphToViewport(shown), size: this.sigma.scaleSize(shown.size) }] : [];
    });
    return placeBox(data, { width, height: size + 10 }, this.sigma.getDimensions(), near);
  }

  /** Draws a soft disc under each of the largest communities. */
  private drawRegions(layer: HTMLCanvasElement): void {
    const { width, height } = this.sigma.getDimensions();
    const ratio = window.devicePixelRatio || 1;
    if (layer.width !== width * ratio || layer.height !== height * ratio) {
      [layer.width, layer.height] = [width * ratio, height * ratio];
      [layer.style.width, layer.style.height] = [`${width}px`, `${height}px`];
    }
    const context = this.regions;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    if (this.colours !== "community" || this.path.size || this.selected || !this.communities.length) return;
    for (const [group, places] of this.placesByCommunity()) {
      if (places.length < 3) continue;
      const x = places.reduce((sum, at) => sum + at.x, 0) / places.length;
      const y = places.reduce((sum, at) => sum + at.y, 0) / places.length;
      const far = Math.sqrt(places.reduce((sum, at) => sum + (at.x - x) ** 2 + (at.y - y) ** 2, 0) / places.length);
      const colour = colourOf(group);
      const shade = context.createRadialGradient(x, y, 0, x, y, far * 1.5);
      shade.addColorStop(0, `${colour}30`);
      shade.addColorStop(0.7, `${colour}18`);
      shade.addColorStop(1, `${colour}00`);
      context.fillStyle = shade;
      context.beginPath();
      context.arc(x, y, far * 1.5, 0, 2 * Math.PI);
      context.fill();
    }
  }
  private placesByCommunity(): Map<number, { x: number; y: number }[]> {
    const groups = new Map<number, { x: number; y: number }[]>();
    const every = Math.ceil(this.graph.order / 3000); // a sample gives the same disc
    let n = 0;
    this.graph.forEachNode((_, at) => {
      if (n++ % every || at.community < 0 || at.community >= 12) return;
      const place = this.sigma.graphToViewport({ x: at.x, y: at.y });
      const known = groups.get(at.community);
      if (known) known.push(place);
      else groups.set(at.community, [place]);
    });
    return groups;
  }
}

function canDraw(): boolean {
  const canvas = document.createElement("canvas");
  return Boolean(canvas.getContext("webgl2") ?? canvas.getContext("webgl"));
}

/** Types by how many of the nodes have them. */
export function countTypes(nodes: OverviewNode[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const node of nodes) counts.set(node.type, (counts.get(node.type) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
}
