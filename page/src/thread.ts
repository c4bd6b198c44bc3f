// The thread of an answer: the entities that lead from the question to it, and the facts between.
import type { Answer, Citation, Walked } from "./api";
import type { ShownStep } from "./ask-model";

export interface ThreadNode {
  name: string;
  /** Whether the name is one of an entity, which the graph can show. */
  known: boolean;
}
export interface ThreadEdge {
  text: string;
  cited: Citation | null;
  /** The number of the citation in the answer; 0 if it has none. */
  mark: number;
}
export interface Thread {
  nodes: ThreadNode[];
  edges: ThreadEdge[];
}

const MOST_HOPS = 6;
const fold = (text: string): string =>
  text
    .normalize("NFKC")
    .toLowerCase()
    .replace(/^(the|a|an) /, "");
// Scripts that put spaces between words; in the others a name may stand anywhere.
const SPACED = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{N}]/u;
/** Whether a folded text has this name as words of its own. */
function says(text: string, name: string): boolean {
  const wanted = fold(name);
  if (!wanted) return false;
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + 1)) {
    const [before, after] = [text[at - 1] ?? "", text[at + wanted.length] ?? ""];
    const [first, last] = [wanted[0]!, wanted[wanted.length - 1]!];
    const cut = (inside: string, beside: string) => SPACED.test(inside) && SPACED.test(beside);
    if (!cut(first, before) && !cut(last, after)) return true;
  }
  return false;
}

interface Link {
  names: string[];
  text: string;
  /** The number of the citation, or else of the link. */
  mark: number;
}
/** The cited sentences with the names they say (`whole`: all of the facts they state), and with the answer if they say it. */
function listLinks(answer: Answer, short: string, whole: boolean): Link[] {
  return answer.citations.flatMap((cited, n) => {
    const stated = answer.facts.filter((fact) => fact.doc === cited.doc && fact.start < cited.end && fact.end > cited.start);
    return stated.map((fact) => {
      const quote = cited.quote || fact.text;
      const all = [...new Map(fact.entities.map((name) => [fold(name), name])).values()];
      const said = all.filter((name) => says(fold(quote), name));
      // A year or a number joins what has nothing to do with each other, so it comes last.
      const names = (said.length > 1 && !whole ? said : all).sort((a, b) => Number(/^[\d.,\s-]+$/.test(a)) - Number(/^[\d.,\s-]+$/.test(b)));
      const named = names.some((name) => isAnswer(short, name));
      return { names: short && !named && says(fold(quote), short) ? [...names, short] : names, text: quote, mark: n + 1 };
    });
  });
}
const isAnswer = (short: string, name: string): boolean => says(fold(short), name) || says(fold(name), short);

/** Whether the question names it; a name of one word counts only as it is written: “Born” is not “born”. */
function isAsked(question: string, name: string): boolean {
  return says(fold(question), name) && (name.includes(" ") || question.includes(name));
}

/** The shortest chain of cited sentences from a name in the question to one in the answer. */
export function followCitations(answer: Answer): Thread | null {
  // “She was born there” names nobody, so without a chain of names the subjects of the facts count, too.
  return chainCitations(answer, false) ?? chainCitations(answer, true);
}
function chainCitations(answer: Answer, whole: boolean): Thread | null {
  const short = answer.candidate.length < 120 ? answer.candidate : "";
  const links = listLinks(answer, short, whole);
  const names = links.flatMap((link) => link.names);
  const asked = names.filter((name) => isAsked(answer.question, name));
  const target = short ? (name: string) => isAnswer(short, name) : (name: string) => says(fold(answer.answer), name);
  const starts = asked.length ? asked : names.filter((name) => !target(name)).slice(0, 1);
  const from = new Set(starts.map(fold));
  const chain = findChain(links, starts, (name) => target(name) && !from.has(fold(name)));
  if (!chain) return null;
  const edges = chain.slice(1).map(({ link }) => {
    const { text, mark } = link!;
    return { text, cited: answer.citations[mark - 1]!, mark };
  });
  const entities = new Set(answer.facts.flatMap((fact) => fact.entities).map(fold));
  return { nodes: chain.map(({ name }) => ({ name, known: entities.has(fold(name)) })), edges };
}

interface Hop {
  name: string;
  link: Link | null;
  before: Hop | null;
}
/** Searches breadth first; of equally short chains the one whose sentences are cited first. */
function findChain(links: Link[], starts: string[], isEnd: (name: string) => boolean): Hop[] | null {
  const seen = new Set(starts.map(fold));
  let edge: Hop[] = [...new Map(starts.map((name) => [fold(name), name])).values()].map((name) => ({ name, link: null, before: null }));
  for (let hops = 0; edge.length && hops < MOST_HOPS; hops++) {
    const next: Hop[] = [];
    for (const link of links)
      for (const here of edge) {
        if (!link.names.some((name) => fold(name) === fold(here.name))) continue;
        for (const name of link.names.filter((one) => !seen.has(fold(one)))) {
          seen.add(fold(name));
          next.push({ name, link, before: here });
        }
      }
    const ends = next.filter((hop) => isEnd(hop.name)).sort((a, b) => a.link!.mark - b.link!.mark || b.name.length - a.name.length);
    if (ends[0]) return unroll(ends[0]);
    edge = next;
  }
  return null;
}
const unroll = (end: Hop): Hop[] => (end.before ? [...unroll(end.before), end] : [end]);

/** Takes the retrieved path that mentions most of the question and the answer, as far as the answer. */
export function followPaths(answer: Answer): Thread | null {
  const short = answer.candidate || answer.answer;
  const text = fold(`${answer.question} ${short}`);
  const rate = (names: string[]) => names.filter((name) => says(text, name)).length;
  const [best] = [...answer.paths].sort((a, b) => rate(b.entities) - rate(a.entities) || b.score - a.score);
  if (!best || best.entities.length < 2) return null;
  const end = best.entities.findIndex((name, n) => n > 0 && isAnswer(short, name) && !isAsked(answer.question, name));
  const edges = best.facts.slice(0, end < 0 ? best.entities.length - 1 : end).map((fact, n) => {
    const step = best.steps?.[n];
    const cited = step?.doc
      ? { doc: step.doc, chunk: "", start: step.start, end: step.end, quote: step.quote || step.text }
      : null;
    return { text: fact, cited, mark: 0 };
  });
  return { nodes: best.entities.slice(0, edges.length + 1).map((name) => ({ name, known: true })), edges };
}

/** What the question seems to name: words in quotes, else words with a capital but the first. */
export function listNames(question: string): string[] {
  const quoted = [...question.matchAll(/[“"«《「]([^”"»》」]+)[”"»》」]/g)].map((one) => one[1]!);
  if (quoted.length) return quoted;
  const runs = [...question.matchAll(/\p{Lu}[\p{L}\p{N}.'’-]*(?:\s+\p{Lu}[\p{L}\p{N}.'’-]*)*/gu)];
  const names = runs.map((run) => (run.index === 0 ? run[0].split(/\s+/).slice(1).join(" ") : run[0]));
  return [...new Set(names.map((name) => name.replace(/['’]s$|[.'’-]+$/, "")).filter(Boolean))];
}

/** While the agent works: the sub-queries as far as each takes up what the one before it found. */
export function followSteps(question: string, steps: ShownStep[]): Thread | null {
  const hops = steps.filter((one) => one.step.startsWith("sub-query ") && one.input);
  const nodes: ThreadNode[] = [{ name: listNames(question).join(" · ") || "?", known: false }];
  const edges: ThreadEdge[] = [];
  let found = listNames(question);
  for (const hop of hops.slice(0, MOST_HOPS)) {
    const first = !edges.length && !found.length; // a question that names nothing
    if (!first && !found.some((name) => says(fold(hop.input!), name))) continue;
    edges.push({ text: hop.input!, cited: null, mark: 0 });
    nodes.push({ name: hop.open ? "…" : (hop.output || "–").slice(0, 60), known: false });
    found = hop.open || !hop.output ? [] : [hop.output, ...listNames(`. ${hop.output}`)];
  }
  return edges.length ? { nodes, edges } : null;
}
interface WalkedLink extends Link {
  cited: Citation | null;
}
/** The facts of a path, each with the two entities it joins, or all of them where it stands alone. */
function listHops({ entities, facts }: Walked): WalkedLink[] {
  return facts.map((fact, n) => {
    const names = facts.length === 1 ? entities : entities.slice(n, n + 2);
    const { doc, start, end } = fact;
    const quote = fact.quote || fact.text;
    return { names: [...new Map(names.map((name) => [fold(name), name])).values()], text: quote, mark: n, cited: doc ? { doc, chunk: "", start, end, quote } : null };
  });
}
/**
 * While the agent works: the paths it walked in the graph, from what the question names to what it asked about or
 * wrote last, else as far as the best path goes.
 */
export function followWalk(question: string, steps: ShownStep[], text: string): Thread | null {
  const walked = steps.flatMap((one) => one.walked ?? []).map(listHops);
  const links = walked.flat().map((link, n) => ({ ...link, mark: n + 1 }));
  const asked = links.flatMap((link) => link.names).filter((name) => isAsked(question, name));
  const from = new Set(asked.map(fold));
  const later = [text, ...steps.map((one) => one.input ?? "").reverse()].filter((said) => said && said !== question).map(fold);
  for (const said of later) {
    const chain = findChain(links, asked, (name) => !from.has(fold(name)) && says(said, name));
    if (chain) return drawHops(chain.map(({ name }) => name), chain.slice(1).map(({ link }) => link as WalkedLink));
  }
  const starts = (hops: WalkedLink[]) => hops[0]!.names.length > 1 && (!asked.length || hops[0]!.names.some((name) => from.has(fold(name))));
  const best = walked.find((hops) => hops.length > 0 && starts(hops));
  if (!best) return null;
  const [one, other] = best[0]!.names as [string, string];
  const turned = from.has(fold(other)) && !from.has(fold(one)) && best.length === 1; // told from its other end
  const rest = best.slice(1).map((hop) => hop.names[1] ?? hop.names[0]!);
  return drawHops([...(turned ? [other, one] : [one, other]), ...rest], best);
}
const drawHops = (names: string[], hops: WalkedLink[]): Thread => ({
  nodes: names.map((name) => ({ name, known: true })),
  edges: hops.map(({ text, cited }) => ({ text, cited, mark: 0 })),
});

/** The documents that were retrieved, each once; that they were says nothing of how they connect. */
export const listRead = (steps: ShownStep[]): string[] => [...new Set(steps.flatMap((one) => one.docs ?? []))];

export function findThread(question: string, answer: Answer | null, steps: ShownStep[], text = ""): Thread | null {
  if (answer?.verdict === "refused") return null;
  if (!answer) return followSteps(question, steps) ?? followWalk(question, steps, text);
  return followCitations(answer) ?? followPaths(answer);
}
