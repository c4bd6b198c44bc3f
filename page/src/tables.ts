// Tables within the text of a document: lines of rows, whose cells carry the names of their columns.
import type { Span } from "./reader";

export interface Cell extends Span {
  column: string;
  text: string;
}
export interface Row extends Span {
  /** In the file itself, as a spreadsheet counts; 0 where it is not known. */
  number: number;
  /** The cell of each column; null where the row has none. */
  cells: (Cell | null)[];
}
export interface Table extends Span {
  columns: string[];
  rows: Row[];
}
/** A table of a file of rows, as the server describes it: `numbers` are runs, the first and how many. */
interface Described extends Span {
  columns: string[];
  numbers: [number, number][];
}

const escape = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
/** Matches the beginning of a cell: one of these columns, else what may be the name of one. */
const columnOf = (columns?: string[]): RegExp =>
  new RegExp(columns ? `(${[...columns].sort((a, b) => b.length - a.length).map(escape).join("|")}): ` : "([^:;|\"]{1,80}): ", "y");
const ANY = columnOf();
const QUOTED = /"(?:[^"]|"")*"/y;
/** The length in code points, as the server counts. */
const length = (text: string): number => Array.from(text).length;

/** Reads `grade: Senior; notice: 3 months.`; a value with a semicolon stands in quotes. Null if there is more. */
function readCells(line: string, start: number, column: RegExp): Cell[] | null {
  const end = line.length - Number(line.endsWith("."));
  const cells: Cell[] = [];
  for (let at = 0; at < end; ) {
    column.lastIndex = at;
    const found = column.exec(line);
    if (!found) return null;
    const from = (QUOTED.lastIndex = column.lastIndex);
    const next = QUOTED.test(line) ? QUOTED.lastIndex : line.indexOf("; ", from);
    const to = next < 0 ? end : Math.min(next, end);
    const written = line.slice(from, to);
    const text = written.startsWith('"') ? written.slice(1, -1).replaceAll('""', '"') : written;
    const place = start + length(line.slice(0, from));
    cells.push({ column: found[1]!, text, start: place, end: place + length(written) });
    at = to + 2;
  }
  return cells;
}
const BARS = /^\s*\|(.*)\|\s*$/s;
/** Reads `| Grade: Senior | Notice: 3 months |`, as the tables of pages and books are kept. */
function readBars(line: string, start: number): Cell[] | null {
  const inside = BARS.exec(line)?.[1];
  if (inside === undefined) return null;
  let at = line.indexOf("|") + 1;
  const cells = inside.split(/(?<!\\)\|/).map((part): Cell => {
    ANY.lastIndex = part.length - part.trimStart().length;
    const column = ANY.exec(part)?.[1] ?? "";
    const from = column ? ANY.lastIndex : part.length - part.trimStart().length;
    const text = part.slice(from).trimEnd();
    const place = start + length(line.slice(0, at + from));
    at += part.length + 1;
    return { column, text: text.replaceAll("\\|", "|"), start: place, end: place + length(text) };
  });
  return cells.some((one) => one.column) ? cells : null;
}

/** The tables of a document: those the server describes, else those that stand between its lines. */
export function findTables(chars: string[], metadata: Record<string, unknown>): Table[] {
  const { tables, cells } = metadata;
  if (Array.isArray(tables)) return (tables as Described[]).map((one) => readDescribed(chars, one));
  // A file whose rows are documents each, of an earlier version.
  if (cells) return [readDescribed(chars, { start: 0, end: chars.length, columns: Object.keys(cells), numbers: [] })];
  const found: Table[] = [];
  let rows: (Span & { cells: Cell[] })[] = [];
  let at = 0;
  for (const line of [...chars.join("").split("\n"), ""]) {
    const end = at + length(line);
    const cells = readBars(line, at);
    if (cells) rows.push({ start: at, end, cells });
    else if (rows.length) {
      found.push(makeTable(rows, []));
      rows = [];
    }
    at = end + 1;
  }
  return found;
}
function readDescribed(chars: string[], { start, end, columns, numbers }: Described): Table {
  const counted = numbers.flatMap(([first, count]) => Array.from({ length: count }, (_, n) => first + n));
  const column = columnOf(columns);
  let at = start;
  const rows = chars.slice(start, end).join("").split("\n").map((line) => {
    const row = { start: at, end: at + length(line), cells: readCells(line, at, column) ?? [{ column: "", text: line, start: at, end: at + length(line) }] };
    at = row.end + 1;
    return row;
  });
  return makeTable(rows, counted, columns);
}
function makeTable(rows: (Span & { cells: Cell[] })[], numbers: number[], known: string[] = []): Table {
  const columns = [...new Set([...known, ...rows.flatMap((row) => row.cells.map((cell) => cell.column))])];
  const places = new Map(columns.map((column, n) => [column, n]));
  const shown = rows.map(({ start, end, cells }, n): Row => {
    const own = columns.map((): Cell | null => null);
    for (const cell of cells) own[places.get(cell.column)!] = cell;
    return { number: numbers[n] ?? 0, start, end, cells: own };
  });
  return { columns, rows: shown, start: rows[0]!.start, end: rows[rows.length - 1]!.end };
}

/** A quote that is one row of a table, as its cells. */
export function readRow(quote: string): Cell[] | null {
  if (quote.includes("\n")) return null;
  const cells = readBars(quote, 0) ?? readCells(quote, 0, ANY);
  return cells && cells.length > 1 ? cells : null;
}
