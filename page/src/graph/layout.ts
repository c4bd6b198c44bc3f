// Lays a graph out step by step; positions are told while it settles. In a worker, or beside the page.
import Graph from "graphology";
import forceAtlas2 from "graphology-layout-forceatlas2";

export interface Job {
  job: number;
  xy: Float32Array;
  edges: Uint32Array;
  rounds: number;
}
export interface Moved {
  job: number;
  xy: Float32Array;
  done: boolean;
}
/** What the drawing needs of a layout: a worker has it, and so has `LocalLayout`. */
export interface Layout {
  onmessage: ((event: MessageEvent<Moved>) => void) | null;
  postMessage(job: Job, transfer: Transferable[]): void;
  terminate(): void;
}

/** Moves the nodes of a job until it has settled, or `goesOn` says no. */
export async function settle({ job, xy, edges, rounds }: Job, goesOn: () => boolean, tell: (moved: Moved) => void): Promise<void> {
  const graph = new Graph({ type: "undirected" });
  const count = xy.length / 2;
  for (let n = 0; n < count; n++) graph.addNode(n, { x: xy[2 * n], y: xy[2 * n + 1] });
  for (let e = 0; e < edges.length; e += 2) graph.mergeEdge(edges[e], edges[e + 1]);
  const settings = {
    ...forceAtlas2.inferSettings(graph),
    barnesHutOptimize: count > 400,
    gravity: 0.6,
    scalingRatio: 12,
    slowDown: 4,
  };
  const step = count > 3000 ? 2 : 8;
  const pause = count > 3000 ? 1500 : 60; // milliseconds between two drawings
  let sent = performance.now();
  for (let done = 0; done < rounds && goesOn(); done += step) {
    forceAtlas2.assign(graph, { iterations: step, settings });
    await new Promise((resume) => setTimeout(resume, 0)); // lets a newer job come in
    if (done + step < rounds && performance.now() - sent < pause) continue;
    sent = performance.now();
    const moved = new Float32Array(count * 2);
    graph.forEachNode((name, at) => {
      moved[2 * Number(name)] = at.x;
      moved[2 * Number(name) + 1] = at.y;
    });
    tell({ job, xy: moved, done: done + step >= rounds });
  }
}

/** A layout without a worker, for a page that is one file. */
export class LocalLayout implements Layout {
  onmessage: Layout["onmessage"] = null;
  private newest = 0;
  postMessage(job: Job): void {
    this.newest = job.job;
    void settle(job, () => job.job === this.newest, (data) => this.onmessage?.(new MessageEvent("message", { data })));
  }
  terminate(): void {
    this.newest = -1;
  }
}
