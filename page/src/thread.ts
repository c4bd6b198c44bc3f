// The thread of an answer: the entities that lead from the question to it, and the facts between.
import type { Answer, Citation, Fact } from "./api";
import type { ShownStep } from "./ask-model";

export interface ThreadNode {
  name: string;
  /** Further members of the fact that leads here; drawn aside. */
  aside: string[];
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

const fold = (text: string): string =>
  text
    .normalize("NFKC")
    .toLowerCase()
    .replace(/^(the|a|an) /, "");
const says = (text: string, name: string): boolean => fold(name) !== "" && text.includes(fold(name));

function citedFacts(answer: Answer): { fact: Fact; mark: number }[] {
  return answer.citations.flatMap((cited, n) => {
    const fact = answer.facts.find((f) => f.doc === cited.doc && f.start < cited.end && f.end > cited.start);
    return fact ? [{ fact, mark: n + 1 }] : [];
  });
}

const members = (fact: Fact): string[] => [...new Map(fact.entities.map((name) => [fold(name), name])).values()];

/** Follows the cited facts from a name in the question to one in the answer. */
export function followCitations(answer: Answer): Thread | null {
  const question = fold(answer.question);
  const target = fold(answer.candidate || answer.answer);
  const left = citedFacts(answer);
  if (!left.length) return null;
  const first = left[0]!.fact;
  // A name of one word counts only as it is written: an entity “Born” is not what “born” means.
  const asked = (name: string) => says(question, name) && (name.includes(" ") || answer.question.includes(name));
  let here = members(first).find(asked) ?? members(first)[0];
  if (!here) return null;
  const nodes: ThreadNode[] = [{ name: here, aside: [] }];
  const edges: ThreadEdge[] = [];
  const seen = new Set([fold(here)]);
  for (let at = 0; at < left.length && nodes.length < 7; at++) {
    const { fact, mark } = left[at]!;
    const others = members(fact).filter((name) => !seen.has(fold(name)));
    if (!members(fact).some((name) => fold(name) === fold(here!)) || !others.length) continue;
    const following = left.slice(at + 1).map((one) => new Set(members(one.fact).map(fold)));
    const next: string =
      others.find((name) => following.some((set) => set.has(fold(name)))) ??
      others.find((name) => says(target, name)) ??
      others[0]!;
    const cited = answer.citations[mark - 1]!;
    edges.push({ text: cited.quote || fact.text, cited, mark });
    nodes.push({ name: next, aside: others.filter((name) => name !== next).slice(0, 2) });
    seen.add(fold(next));
    here = next;
  }
  return edges.length ? { nodes, edges } : null;
}

/** Takes the retrieved path that mentions most of the question and the answer. */
export function followPaths(answer: Answer): Thread | null {
  const text = fold(`${answer.question} ${answer.candidate || answer.answer}`);
  const rate = (names: string[]) => names.filter((name) => says(text, name)).length;
  const [best] = [...answer.paths].sort((a, b) => rate(b.entities) - rate(a.entities) || b.score - a.score);
  if (!best || best.entities.length < 2) return null;
  const edges = best.facts.slice(0, best.entities.length - 1).map((fact, n) => {
    const step = best.steps?.[n];
    const cited = step?.doc
      ? { doc: step.doc, chunk: "", start: step.start, end: step.end, quote: step.quote || step.text }
      : null;
    return { text: fact, cited, mark: 0 };
  });
  return { nodes: best.entities.slice(0, edges.length + 1).map((name) => ({ name, aside: [] })), edges };
}

/** While the agent works: the answers to its sub-questions so far. */
export function followSteps(steps: ShownStep[]): Thread | null {
  const hops = steps.filter((one) => one.step.endsWith("-question") && one.input);
  if (!hops.length) return null;
  const nodes: ThreadNode[] = [{ name: "?", aside: [] }];
  const edges: ThreadEdge[] = [];
  for (const hop of hops.slice(0, 6)) {
    edges.push({ text: hop.input!, cited: null, mark: 0 });
    nodes.push({ name: hop.open ? "…" : (hop.output || "–").slice(0, 60), aside: [] });
  }
  return { nodes, edges };
}

/** Whether a thread leaves the answer behind, as where two are compared: it explains nothing then. */
function leavesAnswer(answer: Answer, { nodes }: Thread): boolean {
  const target = fold(answer.candidate || answer.answer);
  return says(target, nodes[0]!.name) && !says(target, nodes[nodes.length - 1]!.name);
}

export function findThread(answer: Answer | null, steps: ShownStep[]): Thread | null {
  if (answer?.verdict === "refused") return null;
  if (!answer) return followSteps(steps);
  const cited = followCitations(answer);
  return cited && !leavesAnswer(answer, cited) ? cited : followPaths(answer);
}
