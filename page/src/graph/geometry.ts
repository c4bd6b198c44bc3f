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
export interface Circle {
  x: number;
  y: number;
  size: number;
}
const covers = (box: Rectangle, one: Circle): boolean => {
  const [x, y] = [Math.max(box.x, Math.min(one.x, box.x + box.width)), Math.max(box.y, Math.min(one.y, box.y + box.height))];
  return Math.hypot(one.x - x, one.y - y) < one.size;
};
const GAP = 4;
/** Where the name of a node goes: right, left, below or above it, where it covers the fewest of the others. */
export function placeBox(node: Circle, box: { width: number; height: number }, room: { width: number; height: number }, others: Circle[]): Rectangle {
  const { width, height } = box;
  const far = node.size + GAP;
  const [middle, centre] = [node.y - height / 2, Math.max(0, Math.min(node.x - width / 2, room.width - width))];
  const places = [
    [node.x + far, middle],
    [node.x - far - width, middle],
    [centre, node.y + far],
    [centre, node.y - far - height],
  ].map(([x, y]): Rectangle => ({ x: x!, y: y!, width, height }));
  const cost = (one: Rectangle) => {
    const inside = one.x >= 0 && one.y >= 0 && one.x + width <= room.width && one.y + height <= room.height;
    return others.filter((other) => covers(one, other)).length + (inside ? 0 : 1000);
  };
  return places.reduce((best, one) => (cost(one) < cost(best) ? one : best));
}

/** Whether a rectangle lies over one of the others. */
export const meetsAny = (others: Rectangle[], one: Rectangle): boolean =>
  others.some((other) => one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height);
