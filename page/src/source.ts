// A value that parts of the page draw and that changes from outside of them.
import { useLayoutEffect, useState } from "preact/hooks";

export class Source<T> {
  private readonly listeners = new Set<() => void>();
  constructor(private held: T) {}
  get value(): T {
    return this.held;
  }
  set value(value: T) {
    this.held = value;
    this.listeners.forEach((tell) => tell());
  }
  /** Calls `tell` at every change, and at once where `drawn` is the value no more. */
  watch(drawn: T, tell: () => void): () => void {
    this.listeners.add(tell);
    if (drawn !== this.held) tell();
    return () => void this.listeners.delete(tell);
  }
}

/** Draws again at every change, also at one that comes before the first drawing is on the screen. */
export function useSource<T>(source: Source<T>): T {
  const [, redraw] = useState(0);
  const drawn = source.value;
  useLayoutEffect(() => source.watch(drawn, () => redraw((n) => n + 1)), []);
  return drawn;
}
