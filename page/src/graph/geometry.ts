// Where nodes begin, and how pictures of them move.
import type { CameraState } from "sigma/types";

/** How to move a picture that was taken at one camera so that it fits another; both unturned. */
export function placePicture(taken: CameraState, now: CameraState, at: (camera: CameraState) => { x: number; y: number }): { scale: number; x: number; y: number } {
  const scale = taken.ratio / now.ratio;
  const [before, after] = [at(taken), at(now)];
  return { scale, x: after.x - scale * before.x, y: after.y - scale * before.y };
}

/** Places nodes of a community near each other before the layout starts. */
export function firstPosition(number: number, community: number, groups: number): [number, number] {
  const ring = community < 0 ? 0 : 60;
  const angle = (2 * Math.PI * Math.max(0, community)) / Math.max(1, groups);
  const spread = 2.4 * Math.sqrt(number + 1);
  const turn = number * 2.399963; // the golden angle: even and the same every time
  return [ring * Math.cos(angle) + spread * Math.cos(turn), ring * Math.sin(angle) + spread * Math.sin(turn)];
}

export interface Rectangle {
  x: number;
  y: number;
  width: number;
  height: number;
}
/** Whether a rectangle lies over one of the others. */
export const meetsAny = (others: Rectangle[], one: Rectangle): boolean =>
  others.some((other) => one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height);
