// Markdown of answers as nodes. Nothing becomes markup but what is listed here: HTML stays text.
import type { ComponentChildren } from "preact";

type Cite = (number: number) => ComponentChildren;
const INLINE =
  /(`[^`\n]+`)|(!\[([^\]\n]*)\]\([^\s)]*\))|(\*\*[^*\n]+\*\*)|(\*[^*\s][^*\n]*\*)|(\[(\d{1,3})\](?!\())|(\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\))/;

/** Renders one line: code, bold, italics, citation marks and links to web pages. */
export function renderInline(text: string, cite: Cite): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let rest = text;
  for (let found = INLINE.exec(rest); found; found = INLINE.exec(rest)) {
    if (found.index) out.push(rest.slice(0, found.index));
    const [all, code, image, shown, bold, italic, mark, number, link, label, href] = found;
    if (code) out.push(<code>{code.slice(1, -1)}</code>);
    // A picture would be a request to another server; its words stand for it.
    else if (image) out.push(shown || "🖼");
    else if (bold) out.push(<strong>{renderInline(bold.slice(2, -2), cite)}</strong>);
    else if (italic) out.push(<em>{renderInline(italic.slice(1, -1), cite)}</em>);
    else if (mark) out.push(cite(Number(number)));
    else if (link)
      out.push(
        <a href={href} target="_blank" rel="noopener noreferrer nofollow">
          {label}
        </a>,
      );
    rest = rest.slice(found.index + all.length);
  }
  if (rest) out.push(rest);
  return out;
}

export type Block =
  | { kind: "heading"; level: number; text: string }
  | { kind: "list"; ordered: boolean; items: string[] }
  | { kind: "quote" | "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "table"; rows: string[][] };

const LIST = /^\s*(?:[-*+]|(\d{1,3})[.)])\s+(.*)$/;
const cells = (line: string): string[] =>
  line
    .trim()
    .replace(/^\||\|$/g, "")
    .split("|")
    .map((cell) => cell.trim());

/** Joins the lines of a quotation, as of a PDF, but those of a list or a table in it. */
const joinQuoted = (text: string): string => text.replace(/“[^”]*”/g, (quote) => quote.replace(/\s*\n(?!\s*(?:[-*+|]|\d{1,3}[.)]|\n))\s*/g, " "));

/** Splits text into blocks: paragraphs, headings, lists, quotes, code and tables. */
export function parseBlocks(text: string): Block[] {
  const blocks: Block[] = [];
  const lines = joinQuoted(text.replaceAll("\r\n", "\n")).split("\n");
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    if (!line.trim()) continue;
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (line.startsWith("```")) {
      const end = lines.findIndex((one, n) => n > at && one.startsWith("```"));
      const stop = end < 0 ? lines.length : end;
      blocks.push({ kind: "code", text: lines.slice(at + 1, stop).join("\n") });
      at = stop;
    } else if (heading) blocks.push({ kind: "heading", level: heading[1]!.length, text: heading[2]! });
    else if (line.trimStart().startsWith("|") && /^[\s|:-]+$/.test(lines[at + 1] ?? "x")) {
      const rows = [cells(line)];
      for (at += 2; lines[at]?.trimStart().startsWith("|"); at++) rows.push(cells(lines[at]!));
      at--;
      blocks.push({ kind: "table", rows });
    } else if (LIST.test(line)) {
      const ordered = /^\s*\d/.test(line);
      const items: string[] = [];
      for (let item = LIST.exec(lines[at] ?? ""); item; item = LIST.exec(lines[++at] ?? "")) items.push(item[2]!);
      at--;
      blocks.push({ kind: "list", ordered, items });
    } else if (line.startsWith(">")) blocks.push({ kind: "quote", text: line.replace(/^>\s?/, "") });
    else blocks.push({ kind: "text", text: line });
  }
  return blocks;
}

export function Markdown({ text, cite }: { text: string; cite: Cite }) {
  return <div class="markdown">{parseBlocks(text).map((block, n) => renderBlock(block, n, cite))}</div>;
}

function renderBlock(block: Block, n: number, cite: Cite) {
  switch (block.kind) {
    case "heading":
      return (
        <p key={n} class={`heading h${block.level}`}>
          {renderInline(block.text, cite)}
        </p>
      );
    case "code":
      return (
        <pre key={n} tabIndex={0}>
          <code>{block.text}</code>
        </pre>
      );
    case "quote":
      return <blockquote key={n}>{renderInline(block.text, cite)}</blockquote>;
    case "list": {
      const items = block.items.map((item, i) => <li key={i}>{renderInline(item, cite)}</li>);
      return block.ordered ? <ol key={n}>{items}</ol> : <ul key={n}>{items}</ul>;
    }
    case "table":
      return (
        <div key={n} class="scroll" tabIndex={0}>
          <table>
            <thead>
              <tr>
                {block.rows[0]!.map((cell, i) => (
                  <th key={i}>{renderInline(cell, cite)}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {block.rows.slice(1).map((row, r) => (
                <tr key={r}>
                  {row.map((cell, i) => (
                    <td key={i}>{renderInline(cell, cite)}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    default:
      return <p key={n}>{renderInline(block.text, cite)}</p>;
  }
}
