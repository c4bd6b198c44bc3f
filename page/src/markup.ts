// Documents are kept as text with the marks of Markdown (headings, tables, emphasis); here they are read, not shown.

export interface Markup {
  /** What is shown in place of a character; an empty text hides it. */
  shown: Map<number, string>;
  /** Where headings stand, in characters. */
  headings: { start: number; end: number }[];
}
// Formats that are read into text with marks; in others a star or a hash is what it is.
const MARKED = new Set(["html", "markdown", "docx", "epub", "latex", "man", "notebook", "pptx", "rst", "email"]);
export const NO_MARKUP: Markup = { shown: new Map(), headings: [] };

const HEADING = /^#{1,6} +/;
const RULE = /^\s*\|?(?:\s*:?-{3,}:?\s*\|?)+\s*$/;
const ROW = /^\s*\|.*\|\s*$/;
const FENCE = /^\s*(?:```|~~~)/;
// Parts in parentheses are shown, all else of the match is a mark.
const INLINE = [/!?\[([^\]\n]*)\]\([^\s)]*(?: "[^"\n]*")?\)/g, /\*\*(?=\S)([^*\n]+?)\*\*/g, /(?<![\p{L}\p{N}_])__(?=\S)([^_\n]+?)__(?![\p{L}\p{N}_])/gu, /`([^`\n]+)`/g];

/** Finds the marks of a text, given as code points, as the server counts them. */
export function readMarkup(chars: string[], format: unknown): Markup {
  // Of a PDF only the bookmarks become headings.
  const pdf = format === "pdf";
  if (!pdf && !MARKED.has(String(format))) return NO_MARKUP;
  const found: Markup = { shown: new Map(), headings: [] };
  let code = false;
  let start = 0;
  for (let at = 0; at <= chars.length; at++) {
    if (at < chars.length && chars[at] !== "\n") continue;
    const line = chars.slice(start, at);
    const fence = FENCE.test(line.join(""));
    if (pdf) readHeading(line.join(""), start, line.length, found);
    else if (fence) hide(found, start, at);
    else if (!code) readLine(line, start, found);
    if (fence) code = !code;
    start = at + 1;
  }
  return found;
}
function hide(found: Markup, from: number, to: number): void {
  for (let at = from; at < to; at++) found.shown.set(at, "");
}
/** Whether a line of this length is a heading, which is noted then. */
function readHeading(text: string, start: number, length: number, found: Markup): boolean {
  const heading = HEADING.exec(text);
  if (!heading) return false;
  hide(found, start, start + heading[0].length);
  found.headings.push({ start: start + heading[0].length, end: start + length });
  return true;
}
function readLine(line: string[], start: number, found: Markup): void {
  const text = line.join("");
  if (readHeading(text, start, line.length, found)) {
    // Its words may be emphasised like those of any line.
  } else if (RULE.test(text)) return hide(found, start, start + line.length);
  else if (ROW.test(text)) readRow(line, start, found);
  // Positions of a match are in code units, those of the text in code points.
  const place = (units: number) => start + Array.from(text.slice(0, units)).length;
  for (const pattern of INLINE)
    for (const match of text.matchAll(pattern)) {
      const inside = match.index + match[0].indexOf(match[1]!, 1);
      hide(found, place(match.index), place(inside));
      hide(found, place(inside + match[1]!.length), place(match.index + match[0].length));
    }
}
function readRow(line: string[], start: number, found: Markup): void {
  const bars = line.flatMap((char, n) => (char === "|" && line[n - 1] !== "\\" ? [n] : []));
  bars.forEach((bar, n) => found.shown.set(start + bar, n === 0 || n === bars.length - 1 ? "" : "·"));
}

/** A quote without the marks of headings, tables and emphasis. */
export function dropMarks(quote: string): string {
  const chars = Array.from(quote);
  const { shown } = readMarkup(chars, "markdown");
  return shown.size ? chars.map((char, n) => shown.get(n) ?? char).join("").replace(/[ \t]{2,}/g, " ").trim() : quote;
}
