// A squarified treemap: areas follow the sizes, boxes stay near to squares.
export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}
const worst = (areas: number[], side: number): number => {
  const sum = areas.reduce((a, b) => a + b, 0);
  const [most, least] = [Math.max(...areas), Math.min(...areas)];
  return Math.max((side * side * most) / (sum * sum), (sum * sum) / (side * side * least));
};

/** Boxes for sizes in descending order, filling the whole rectangle. */
export function layOutTreemap(sizes: number[], width: number, height: number): Box[] {
  const total = sizes.reduce((a, b) => a + Math.max(b, 0), 0) || 1;
  const areas = sizes.map((size) => (Math.max(size, 0.001) / total) * width * height);
  const boxes: Box[] = [];
  let room: Box = { x: 0, y: 0, width, height };
  for (let at = 0; at < areas.length; ) {
    const side = Math.min(room.width, room.height);
    let row = [areas[at]!];
    while (at + row.length < areas.length && worst([...row, areas[at + row.length]!], side) <= worst(row, side))
      row = [...row, areas[at + row.length]!];
    room = placeRow(row, room, boxes);
    at += row.length;
  }
  return boxes;
}

function placeRow(row: number[], room: Box, boxes: Box[]): Box {
  const sum = row.reduce((a, b) => a + b, 0);
  const upright = room.width >= room.height;
  const depth = upright ? Math.min(sum / room.height, room.width) : Math.min(sum / room.width, room.height);
  let place = 0;
  for (const area of row) {
    const length = (area / sum) * (upright ? room.height : room.width);
    boxes.push(
      upright
        ? { x: room.x, y: room.y + place, width: depth, height: length }
        : { x: room.x + place, y: room.y, width: length, height: depth },
    );
    place += length;
  }
  return upright
    ? { ...room, x: room.x + depth, width: room.width - depth }
    : { ...room, y: room.y + depth, height: room.height - depth };
}

const WIDE = /[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uff60]/;
/** How much room a text takes, counted in Latin letters; Chinese signs are wider. */
const measure = (text: string): number => [...text].reduce((sum, one) => sum + (WIDE.test(one) ? 1.7 : 1), 0);

/** The text in at most so many lines of this room; "…" where it is cut. */
export function wrapLabel(text: string, room: number, most: number): string[] {
  const lines: string[] = [];
  // Chinese has no spaces: a line may end after every sign.
  const words = text.split(/\s+/).flatMap((word) => (WIDE.test(word) ? [...word] : [` ${word}`]));
  for (const word of words) {
    const last = lines.at(-1);
    if (last !== undefined && measure(last + word) <= room) lines[lines.length - 1] = last + word;
    else lines.push(word.trimStart());
  }
  const kept = lines.slice(0, most);
  if (lines.length > most && kept.length) kept[most - 1] += "…";
  return kept.map((line) => shorten(line, room));
}
function shorten(line: string, room: number): string {
  if (measure(line) <= room) return line;
  let kept = [...line.replace(/…$/, "")];
  while (kept.length > 1 && measure(kept.join("")) + 1 > room) kept = kept.slice(0, -1);
  return `${kept.join("").replace(/[\s,]+$/, "")}…`;
}
