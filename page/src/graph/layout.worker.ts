// The layout off the main thread.
import { settle, type Job } from "./layout";

let newest = 0;
self.onmessage = (event: MessageEvent<Job>) => {
  newest = event.data.job;
  const goesOn = () => event.data.job === newest;
  void settle(event.data, goesOn, (moved) => self.postMessage(moved, { transfer: [moved.xy.buffer] }));
};
