import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { EventParser, type Answer } from "../src/api";
import { applyEvent, type Turn } from "../src/ask-model";
import { placePicture } from "../src/graph/geometry";
import { Catalogue } from "../src/i18n";
import { Pace } from "../src/jobs";
import { parseBlocks, renderInline } from "../src/markdown";
import { describeMissing, findNodes } from "../src/names";
import {
  checkAnswer,
  explainRefusal,
  formatSource,
  headRefusal,
  isSure,
  packAnswer,
  partRepeated,
  spaceParagraphs,
  toMarkdown,
  unpackAnswer,
} from "../src/share";
import { findFront } from "../src/report";
import { Source } from "../src/source";
import { current, enter } from "../src/state";
import { findThread, listNames, listRead } from "../src/thread";
import { layOutTreemap, wrapLabel } from "../src/treemap";
import { Attributes, listOnce } from "../src/ui";
import { findBest, markEvidence, measureSupport } from "../src/views/compare";
import { explainCalls } from "../src/views/build";
import { parseQuestions } from "../src/views/evaluations";
import { judgeStep, nest, readReply } from "../src/views/reasoning";
import { zh } from "../src/zh";
import { messages, steps } from "../src/zh-messages";

const usage = { calls: 0, prompt_tokens: 0, completion_tokens: 0, cached_calls: 0, money: 0 };
const fact = (text: string, entities: string[], doc: string, start: number, end: number) => ({
  id: text,
  text,
  relation: "",
  entities,
  doc,
  start,
  end,
  quote: text,
});
const answer: Answer = {
  question: "Where was the designer of the Marrow Bridge born?",
  recipe: "clew",
  seconds: 0.4,
  usage,
  answer: "It was designed by Ilse. [1] She was born in Hallowmere. [2]",
  candidate: "Hallowmere",
  verdict: "answered",
  note: "",
  missing: "",
  complete: true,
  citations: [
    { doc: "bridge.md", chunk: "a", start: 10, end: 40, quote: "It was designed by Ilse." },
    { doc: "ilse.md", chunk: "b", start: 5, end: 50, quote: "She was born in Hallowmere." },
  ],
  chunks: [],
  entities: [],
  paths: [],
  facts: [
    fact("It was designed by Ilse.", ["Ilse", "The Marrow Bridge", "1887"], "bridge.md", 10, 40),
    fact("She was born in Hallowmere.", ["Vessen", "Ilse", "Hallowmere"], "ilse.md", 5, 50),
  ],
};
const turn: Turn = {
  id: 1,
  workspace: "w",
  question: "?",
  recipe: "",
  mode: "open",
  steps: [],
  text: "",
  answer: null,
  state: "running",
  problem: "",
  started: 0,
};

describe("Markdown", () => {
  it("never turns HTML into markup", () => {
    const shown = renderInline('<img src=x onerror="alert(1)"> <script>x</script>', (n) => n);
    expect(shown).toEqual(['<img src=x onerror="alert(1)"> <script>x</script>']);
  });
  it("links only web addresses", () => {
    expect(renderInline("[a](javascript:alert(1))", (n) => n).every((one) => typeof one === "string")).toBe(true);
    expect(renderInline("[a](https://x.org/y)", (n) => n)[0]).toMatchObject({ type: "a", props: { href: "https://x.org/y" } });
  });
  it("shows the words of a picture, which would be a request elsewhere", () => {
    expect(renderInline("see ![the bridge](http://x.org/p.png).", (n) => n)).toEqual(["see ", "the bridge", "."]);
  });
  it("splits text into blocks", () => {
    const kinds = parseBlocks("# A\ntext\n- one\n- two\n\n```\ncode\n```\n| a | b |\n|---|---|\n| 1 | 2 |\n> said").map((b) => b.kind);
    expect(kinds).toEqual(["heading", "text", "list", "code", "table", "quote"]);
  });
  it("hands citation marks over", () => {
    expect(renderInline("so [2].", (n) => `<${n}>`)).toEqual(["so ", "<2>", "."]);
  });
});

describe("events", () => {
  it("wait until they are complete", () => {
    const parser = new EventParser();
    expect(parser.push(": heartbeat\n\nevent: token\nda")).toEqual([]);
    expect(parser.push('ta: {"text":"a: b"}\n\n')).toEqual([{ name: "token", id: "", data: '{"text":"a: b"}' }]);
  });
  it("build a turn", () => {
    const send = (one: Turn, name: string, data: unknown) => applyEvent(one, { name, id: "", data: JSON.stringify(data) });
    let now = send(turn, "step-started", { step: "search", input: "q", depth: 0 });
    expect(now.steps[0]!.open).toBe(true);
    now = send(now, "step", { step: "search", output: "2 passages", seconds: 1, depth: 0 });
    expect(now.steps).toEqual([{ step: "search", input: "q", output: "2 passages", seconds: 1, depth: 0, open: false }]);
    now = send(send(now, "token", { text: "Hal" }), "token", { text: "low" });
    expect(now.text).toBe("Hallow");
    const anew = send(send(now, "token", { text: "\n", restart: true }), "token", { text: "Vessen" });
    expect(anew.text).toBe("Vessen");
    expect(send(now, "answer", answer).state).toBe("done");
    expect(send(now, "error", { status: 500, detail: "no" }).problem).toBe("no");
  });
  it("tell sub-questions that are read at once apart", () => {
    const send = (one: Turn, name: string, data: unknown) => applyEvent(one, { name, id: "", data: JSON.stringify(data) });
    let now = turn;
    for (const input of ["one?", "two?"]) now = send(now, "step-started", { step: "sub-query 1", input, depth: 0 });
    for (const input of ["one?", "two?"]) now = send(now, "step-started", { step: "search", input, depth: 1 });
    now = send(now, "step", { step: "sub-query 1", input: "two?", output: "2", depth: 0 });
    now = send(now, "step", { step: "sub-query 1", input: "one?", output: "1", depth: 0 });
    expect(nest(now.steps).map(({ step, below }) => [step.input, step.output, below.map((one) => one.step.input)])).toEqual([
      ["one?", "1", ["one?"]],
      ["two?", "2", ["two?"]],
    ]);
  });
  it("nest by depth", () => {
    const steps = [0, 1, 1, 0].map((depth) => ({ step: "s", depth, open: false }));
    expect(nest(steps).map((one) => one.below.length)).toEqual([2, 0]);
  });
});

describe("the thread", () => {
  it("leads from the question over shared names to the answer", () => {
    const found = findThread(answer.question, answer, [])!;
    expect(found.nodes.map((one) => one.name)).toEqual(["The Marrow Bridge", "Ilse", "Hallowmere"]);
    expect(found.edges.map((one) => one.mark)).toEqual([1, 2]);
  });
  it("takes a path where nothing cited is a fact", () => {
    const path = { entities: ["A", "B"], facts: ["A knows B"], score: 1 };
    expect(findThread("", { ...answer, facts: [], paths: [path] }, [])!.nodes.map((one) => one.name)).toEqual(["A", "B"]);
  });
  it("follows sub-questions while the agent works", () => {
    const steps = [{ step: "sub-query 1", input: "Who?", depth: 0, open: true }];
    expect(findThread("who?", null, steps)!.nodes.map((one) => one.name)).toEqual(["?", "…"]);
  });
  it("ends at the answer, by the shortest way", () => {
    const told = (quote: string, entities: string[], start: number) => ({
      cited: { doc: "ships.md", chunk: "a", start, end: start + quote.length, quote },
      fact: fact(quote, entities, "ships.md", start, start + quote.length),
    });
    const some = [
      told("The Halcyon, built in 1962, was commanded by Captain Ingrid Solheim.", ["Halcyon", "1962", "Ingrid Solheim"], 0),
      told("In 1962 Ingrid Solheim gave her charts to the Polar Museum.", ["1962", "Ingrid Solheim", "Polar Museum"], 100),
    ];
    const shown = (question: string, candidate: string) =>
      findThread(question, { ...answer, question, candidate, citations: some.map((one) => one.cited), facts: some.map((one) => one.fact) }, []);
    const found = shown("Who commanded the Halcyon?", "Captain Ingrid Solheim")!;
    expect(found.nodes.map((one) => one.name)).toEqual(["Halcyon", "Ingrid Solheim"]);
    expect(found.edges.map((one) => one.mark)).toEqual([1]);
    const charts = shown("Who got the charts of the commander of the Halcyon?", "the Polar Museum")!;
    expect(charts.nodes.map((one) => one.name)).toEqual(["Halcyon", "Ingrid Solheim", "Polar Museum"]);
    expect(shown("What gave Ingrid Solheim?", "her charts")!.nodes.map((one) => [one.name, one.known])).toEqual([
      ["Ingrid Solheim", true],
      ["her charts", false],
    ]);
  });
  it("reaches the answer over a sentence that says “she”", () => {
    const first = "The Halcyon was commanded by Ingrid Solheim.";
    const second = "She was born in Vik and studied at the Polar School.";
    const question = "Where was the commander of the Halcyon born?";
    const citations = [first, second].map((quote, n) => ({ doc: "ships.md", chunk: "a", start: 100 * n, end: 100 * n + quote.length, quote }));
    const facts = [
      fact(first, ["Halcyon", "Ingrid Solheim"], "ships.md", 0, first.length),
      fact(second, ["Polar School", "Ingrid Solheim", "Vik"], "ships.md", 100, 100 + second.length),
    ];
    const found = findThread(question, { ...answer, question, candidate: "Vik", citations, facts }, [])!;
    expect(found.nodes.map((one) => one.name)).toEqual(["Halcyon", "Ingrid Solheim", "Vik"]);
  });
  it("follows only sub-questions that take up what was found", () => {
    const hop = (input: string, output?: string) => ({ step: "sub-query 1", input, output, depth: 0, open: !output });
    const steps = [hop("Who built the Halcyon?", "Ingrid Solheim"), hop("How high is Mount Vik?", "900 m"), hop("Where was Ingrid Solheim born?")];
    const found = findThread("Where was the builder of the Halcyon born?", null, steps)!;
    expect(found.nodes.map((one) => one.name)).toEqual(["Halcyon", "Ingrid Solheim", "…"]);
  });
  it("lights the paths that a retrieval walked, as far as is written", () => {
    const said = (text: string) => ({ text, doc: "ships.md", start: 0, end: text.length, quote: text });
    const walked = [
      { entities: ["Halcyon", "Ingrid Solheim"], facts: [said("Ingrid Solheim commanded the Halcyon.")] },
      { entities: ["Halcyon", "Ingrid Solheim", "Vik"], facts: [said("Ingrid Solheim commanded the Halcyon."), said("She was born in Vik.")] },
      { entities: ["Bremen", "Halcyon", "1962"], facts: [said("The Halcyon was built in Bremen in 1962.")] },
    ];
    const steps = [{ step: "search", input: "Who led the Halcyon?", output: "5 passages", walked, depth: 0, open: false }];
    const names = (text: string) => findThread("Where was the commander of the Halcyon born?", null, steps, text)!.nodes.map((one) => one.name);
    expect(names("")).toEqual(["Halcyon", "Ingrid Solheim"]);
    expect(names("She came from Vik")).toEqual(["Halcyon", "Ingrid Solheim", "Vik"]);
    expect(names("It was built in Bremen")).toEqual(["Halcyon", "Bremen"]);
    const later = [...steps, { step: "search", input: "Who was born in Vik?", depth: 0, open: true }];
    expect(findThread("Where was the commander of the Halcyon born?", null, later)!.nodes.at(-1)!.name).toBe("Vik");
    expect(findThread("", null, [{ ...steps[0]!, walked: [] }])).toBeNull();
  });
  it("lists what a run of one question reads, as it is no path", () => {
    const steps = [
      { step: "search", input: "q", output: "5 passages", docs: ["/a/ships.txt", "b.md", "c.md", "d.md", "e.md"], depth: 0, open: false },
      { step: "answer", input: "q", depth: 0, open: true },
    ];
    expect(findThread("Who commanded the Halcyon?", null, steps)).toBeNull();
    expect(listRead([...steps, ...steps])).toEqual(["/a/ships.txt", "b.md", "c.md", "d.md", "e.md"]);
    expect(listNames("Which Norwegian met Ada Lovelace’s aunt?")).toEqual(["Norwegian", "Ada Lovelace"]);
  });
});

describe("what parts of the page share", () => {
  it("tells of a change that came before the subscription", () => {
    const source = new Source("starting");
    const told: string[] = [];
    source.value = "locked";
    const leave = source.watch("starting", () => told.push(source.value));
    source.value = "open";
    leave();
    source.value = "gone";
    expect(told).toEqual(["locked", "open"]);
  });
  it("takes a key of letters that no header can hold for a wrong one", async () => {
    for (const key of ["ключ", "clew_钥匙", "clew a"]) {
      await enter(key, false);
      expect([current().access, current().problem]).toEqual(["locked", "wrong-key"]);
    }
  });
  it("shows attributes only where there are some", () => {
    expect(Attributes({ of: {} })).toBeNull();
    expect(JSON.stringify(Attributes({ of: { population: "4321" } }))).toContain("4321");
  });
});

describe("sharing", () => {
  it("survives the way through a link", async () => {
    const found = await unpackAnswer(await packAnswer(answer));
    expect(found!.answer).toBe(answer.answer);
    expect(found!.citations).toEqual(answer.citations);
  });
  it("takes nothing else", async () => {
    expect(await unpackAnswer("abc")).toBeNull();
    expect(checkAnswer({ question: "q", answer: { toString: 1 } })).toBeNull();
    expect(checkAnswer(null)).toBeNull();
  });
  it("writes footnotes", () => {
    expect(toMarkdown(answer)).toContain("born in Hallowmere. [^2]");
    const armed = "<img src=x> `<b>` [x](javascript:alert(1)) [y](https://y.org) [1]";
    expect(toMarkdown({ ...answer, answer: armed })).toContain("\\<img src=x> `<b>` x [y](https://y.org) [^1]");
    expect(toMarkdown({ ...answer, answer: "So ![p](http://x.org/p.png). [1]" })).toContain("So p. [^1]");
    expect(toMarkdown(answer)).toContain("[^2]: ilse.md, 5–50: “She was born in Hallowmere.”");
  });
  it("separates paragraphs, and leaves lists, tables and code as they are", () => {
    expect(spaceParagraphs("One. [1]\nTwo.\n- a\n- b\n\nEnd")).toBe("One. [1]\n\nTwo.\n\n- a\n- b\n\nEnd");
    expect(spaceParagraphs("```\na\nb\n```\n| a |\n|---|\n| 1 |")).toBe("```\na\nb\n```\n\n| a |\n|---|\n| 1 |");
  });
  it("heads a refusal by its reason", () => {
    const heads = [
      "no language model is configured",
      "没有足够确定的答案",
      "no answer is certain enough",
      "the documents do not say",
    ].map((missing) => headRefusal({ ...answer, verdict: "refused", missing }));
    expect(heads).toEqual([
      "Not answered: no model is set up for it.",
      "Not answered: it is not sure enough.",
      "Not answered: it is not sure enough.",
      "Not answered: the documents do not say it.",
    ]);
    expect(headRefusal({ ...answer, missing: "x", complete: false })).toContain("ended before");
    expect(heads.every((text) => text in zh)).toBe(true);
    expect(explainRefusal({ ...answer, missing: "no answer is certain enough" })).toBe("Why: no answer is certain enough");
  });
  it("names the page of the quote", () => {
    expect(formatSource({ ...answer.citations[0]!, page: 3 })).toBe("bridge.md · Page 3");
    expect(formatSource({ ...answer.citations[0]!, page: null })).toBe("bridge.md");
  });
  it("does not say the short answer twice", () => {
    expect(partRepeated("Best candidate: X\nmore", "X")).toEqual({ marks: [], rest: "more" });
    expect(partRepeated("最佳候选：李明 [1][2]\n“引文” [1]", "李明")).toEqual({ marks: [1, 2], rest: "“引文” [1]" });
    expect(partRepeated("X", "X").rest).toBe("X");
    expect(partRepeated("X [3].", "X")).toEqual({ marks: [3], rest: "" });
    expect(partRepeated("Nobody knows X", "Y").rest).toBe("Nobody knows X");
  });
  it("is only said as a fact where it is sure", () => {
    expect([0.01, 0.49, 0.5, null, undefined].map((confidence) => isSure({ ...answer, confidence }))).toEqual([false, false, true, true, true]);
  });
});

describe("figures", () => {
  it("fill a treemap", () => {
    const boxes = layOutTreemap([6, 3, 2, 1], 100, 60);
    expect(boxes.reduce((sum, one) => sum + one.width * one.height, 0)).toBeCloseTo(6000);
    expect(boxes.every((one) => one.x >= 0 && one.y >= 0 && one.x + one.width <= 100.001 && one.y + one.height <= 60.001)).toBe(true);
  });
  it("name a box in the lines it has room for", () => {
    expect(wrapLabel("Chinese Communists, Taipei", 12, 3)).toEqual(["Chinese", "Communists,", "Taipei"]);
    expect(wrapLabel("Chinese Communists, Taipei", 12, 2)).toEqual(["Chinese", "Communists,…"]);
    expect(wrapLabel("Employment", 6, 2)).toEqual(["Emplo…"]);
    expect(wrapLabel("东江大桥由李明设计", 7, 2)).toEqual(["东江大桥", "由李明…"]);
  });
  it("tell the time left from the pace of a stage", () => {
    const pace = new Pace();
    expect(pace.measure("extract", 0, 10, 0).left).toBeNull();
    expect(pace.measure("extract", 5, 10, 2000).left).toBeCloseTo(2);
    expect(pace.measure("embed", 1, 4, 2100).left).toBeNull();
    expect(pace.measure("extract", 6, 10, 3000).left).toBeCloseTo(2);
  });
  it("tell the time left of one long document by its passages", () => {
    const pace = new Pace();
    pace.measure("extract", 0, 2, 0);
    pace.measure("passages", 1, 70, 1000);
    expect(pace.measure("passages", 11, 70, 3000)).toEqual({ stage: "passages", done: 11, total: 70, left: 11.8 });
    expect(pace.measure("extract", 1, 2, 3100).stage).toBe("passages");
    expect(pace.measure("passages", 70, 70, 9000).left).toBeNull();
    expect(pace.measure("write", 0, 1, 9100).stage).toBe("write");
  });
  it("compare how far answers are supported", () => {
    const other = { ...answer, answer: "It is old. [1] Nobody knows. Said “so.” [2]", confidence: 0.4 };
    expect(measureSupport(answer)).toEqual({ cited: 2, all: 2, sure: null });
    expect(measureSupport(other)).toEqual({ cited: 2, all: 3, sure: 0.4 });
    expect(measureSupport({ ...answer, answer: "“It is.” [1] (Is it? It is)\n“So.” [2]" })).toMatchObject({ cited: 2, all: 2 });
    expect(measureSupport({ ...answer, answer: "It is. [1] It was. (not found in the documents)" })).toMatchObject({ cited: 1, all: 2 });
    expect(measureSupport({ ...answer, answer: "它在此。[1]\n它曾在此。（文档中未找到）" })).toMatchObject({ cited: 1, all: 2 });
    expect(findBest([answer, other])).toEqual({ support: 1, sure: 0.4 });
  });
  it("say why a build took more calls than estimated", () => {
    expect(explainCalls(68, 340)).toContain("68 calls");
    expect(explainCalls(68, 68) + explainCalls(null, 9)).toBe("");
  });
  it("list a recipe once, as the agent it is asked for as", () => {
    const recipe = (name: string, kind: string) => ({ name, kind, about: "", needs: "", source: "" });
    const listed = listOnce([recipe("youtu", "retriever"), recipe("clew", "retriever"), recipe("youtu", "agent")]);
    expect(listed.map((one) => [one.name, one.kind])).toEqual([["clew", "retriever"], ["youtu", "agent"]]);
  });
  it("mark what only one recipe found", () => {
    expect([...markEvidence([["a", "b"], ["a"]], 0)]).toEqual([["a", "all"], ["b", "only"]]);
  });
  it("read questions from lines", () => {
    expect(parseQuestions("Who? | Ann\n\nWhere?\tHere\tThere")).toEqual([
      { question: "Who?", answers: ["Ann"] },
      { question: "Where?", answers: ["Here", "There"] },
    ]);
  });
});

it("every text has a Chinese one, with the same values", () => {
  const files = (folder: string): string[] =>
    readdirSync(folder).flatMap((name) => {
      const path = join(folder, name);
      return statSync(path).isDirectory() ? files(path) : [path];
    });
  const source = files("src").map((path) => readFileSync(path, "utf8")).join("\n");
  const texts = new Set([...source.matchAll(/\bt\(\s*"([^"]*)"/g)].map((one) => one[1]!));
  for (const found of source.matchAll(/\btn\(\s*[^",]+,\s*"([^"]*)",\s*"([^"]*)"/g)) texts.add(found[1]!).add(found[2]!);
  expect(texts.size).toBeGreaterThan(150);
  expect([...texts].filter((text) => !(text in zh))).toEqual([]);
  const values = (text: string) => [...text.matchAll(/\{\w+\}/g)].map((one) => one[0]).sort();
  expect(Object.entries(zh).filter(([en, cn]) => String(values(en)) !== String(values(cn)))).toEqual([]);
});

describe("what the server says", () => {
  const catalogue = new Catalogue(messages);
  it("is translated with its values, and in parts", () => {
    expect(catalogue.translate("not all of it is in the documents: Lisbon")).toBe("文档中没有其全部内容：Lisbon");
    expect(catalogue.translate("fell back to the dual level: nothing was found; the quotes do not say all of this")).toBe(
      "改用双层检索：没有找到内容；引文未说明其全部内容",
    );
    expect(catalogue.translate("8 passages: Marrow Bridge; nothing")).toBe("8 个段落：Marrow Bridge; nothing");
    expect(new Catalogue(steps).translate("#2 compare")).toBe("第 2 步：比较");
  });
  it("stays as it is where it is not known", () => {
    for (const text of ["Hallowmere", "1822; 1860", "", "constructor"]) expect(catalogue.translate(text)).toBe(text);
  });
  it("has the same values in both languages", () => {
    const values = (text: string) => String([...text.matchAll(/\{\w+\}/g)].map((one) => one[0]).sort());
    expect([...messages, ...steps].filter(([en, cn]) => values(en) !== values(cn))).toEqual([]);
    expect(new Set(messages.map(([en]) => en)).size).toBe(messages.length);
  });
});

describe("the reasoning", () => {
  const step = (output: string) => ({ step: "read", output, depth: 0, open: false });
  it("says how each step ended", () => {
    const ends = ["Hallowmere", "nothing new", 'failed: no tree', '{"sufficient":false,"missing":"x"}', ""];
    expect(ends.map((text) => judgeStep(step(text)))).toEqual(["found", "nothing", "failed", "refused", null]);
    expect(judgeStep({ ...step("Hallowmere"), open: true })).toBeNull();
  });
  it("reads a reply that is JSON, also one that was cut", () => {
    expect(readReply('{"questions":["Who?","Where?"],"n":{"a":1,"b":2}}')).toEqual(["questions: Who?; Where?", "n: 1 – 2"]);
    expect(readReply('{"questions":["Wh')).toEqual(["questions: Wh …"]);
  });
  it("is the whole trace once the answer is there", () => {
    const trace = [{ step: "plan", output: "x", steps: [{ step: "drop", input: "a", output: "why", docs: ["d.md"] }] }];
    const done = applyEvent(turn, { name: "answer", id: "", data: JSON.stringify({ ...answer, trace }) });
    expect(done.steps.map((one) => [one.step, one.depth, one.open])).toEqual([["plan", 0, false], ["drop", 1, false]]);
  });
});

describe("quotations", () => {
  it("joins their lines and keeps lists in them", () => {
    expect(parseBlocks("“One\ntwo” [1]\nThree")).toEqual([
      { kind: "text", text: "“One two” [1]" },
      { kind: "text", text: "Three" },
    ]);
    expect(parseBlocks("“Steps:\n1. go\n2. stop”").map((one) => one.kind)).toEqual(["text", "list"]);
  });
});

describe("drawings", () => {
  it("keeps recipes that none is better and cheaper than", () => {
    const points = [
      { name: "slow", x: 9, y: 0.9 },
      { name: "worse", x: 5, y: 0.4 },
      { name: "fast", x: 1, y: 0.5 },
    ];
    expect(findFront(points).map((one) => one.name)).toEqual(["fast", "slow"]);
  });
  it("moves a picture so that it fits another camera", () => {
    const at = (camera: { x: number; ratio: number }) => ({ x: 500 - (400 * camera.x) / camera.ratio, y: 300 });
    const camera = (x: number, ratio: number) => ({ x, y: 0.5, ratio, angle: 0 });
    const taken = camera(0.5, 1);
    const moved = placePicture(taken, camera(0.6, 0.5), at as never);
    expect(moved.scale).toBe(2);
    expect(moved.x + moved.scale * at(taken).x).toBeCloseTo(at(camera(0.6, 0.5)).x);
  });
  it("finds exported nodes by any name and quotes what is missing for a shell", () => {
    const nodes = [
      { name: "Ilse Brandvik", aliases: ["I. Brandvik"], degree: 3 },
      { name: "Zoë", aliases: [], degree: 9 },
    ];
    expect(findNodes(nodes, "zoe")).toEqual([1]);
    expect(findNodes(nodes, "i. b")).toEqual([0]);
    expect(describeMissing(2, 5, "it's")).toContain("'it'\\''s'");
    expect(describeMissing(2, 2, "x")).toBe("nothing here is called that");
  });
});
