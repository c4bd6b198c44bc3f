// Lays a graph out off the main thread; positions are sent back while it settles.
import Graph from "graphology";
import forceAtlas2 from "graphology-layout-forceatlas2";

interface Job {
  job: number;
  xy: Float32Array;
  edges: Uint32Array;
  rounds: number;
}
let newest = 0;

self.onmessage = async (event: MessageEvent<Job>) => {
  const { job, xy, edges, rounds } = event.data;
  newest = job;
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
  for (let done = 0; done < rounds && job === newest; done += step) {
    forceAtlas2.assign(graph, { iterations: step, settings });
    await new Promise((resume) => setTimeout(resume, 0)); // lets a newer job come in
    if (done + step < rounds && performance.now() - sent < pause) continue;
    sent = performance.now();
    const moved = new Float32Array(count * 2);
    graph.forEachNode((name, at) => {
      moved[2 * Number(name)] = at.x;
      moved[2 * Number(name) + 1] = at.y;
    });
    self.postMessage({ job, xy: moved, done: done + step >= rounds }, { transfer: [moved.buffer] });
  }
};
