// Texts in the language of the page. The English text is the key; Chinese is loaded when chosen.
import type { Language } from "./state";

type Pairs = [string, string][];
type Values = Record<string, string | number>;

const fill = (text: string, values: Values): string =>
  text.replace(/\{(\w+)\}/g, (all, name: string) => String(values[name] ?? all));

// Of what the server fills in only these are its own words; others are names or words of a document.
const OWN_WORDS = new Set(["why", "instead", "missing", "reason", "hint"]);

/** Messages of the server with their translations; `{name}` in one stands for what is filled in. */
export class Catalogue {
  private readonly fixed: Record<string, string>;
  private readonly open: [RegExp, string][];
  constructor(pairs: Pairs) {
    this.fixed = Object.fromEntries(pairs);
    // The longest first, as a short message may be the beginning of another.
    const open = pairs.filter(([english]) => english.includes("{")).sort(([a], [b]) => b.length - a.length);
    this.open = open.map(([english, other]) => [toPattern(english), other]);
  }
  /** The message translated, or its parts; what is not known stays as it is. */
  translate(message: string): string {
    const whole = this.find(message);
    if (whole !== null) return whole;
    const parts = message.split("; ");
    const found = parts.map((part) => this.find(part));
    return parts.length > 1 && found.some((one) => one !== null)
      ? parts.map((part, n) => found[n] ?? part).join("；")
      : message;
  }
  private find(message: string): string | null {
    if (Object.hasOwn(this.fixed, message)) return this.fixed[message]!;
    for (const [pattern, other] of this.open) {
      const values = pattern.exec(message)?.groups;
      if (!values) continue;
      const shown = Object.entries(values).map(([name, said]) => [name, OWN_WORDS.has(name) ? this.translate(said) : said]);
      return fill(other, Object.fromEntries(shown));
    }
    return null;
  }
}
function toPattern(english: string): RegExp {
  const parts = english.split(/\{(\w+)\}/);
  const escape = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const value = (name: string) => (name === "n" ? `(?<n>[\\d.,]+)` : `(?<${name}>.+)`);
  return new RegExp(`^${parts.map((part, n) => (n % 2 ? value(part) : escape(part))).join("")}$`, "s");
}

let words: Record<string, string> = {};
let messages: Catalogue | null = null;
let steps: Catalogue | null = null;

export async function loadLanguage(language: Language): Promise<void> {
  if (language === "en") {
    [words, messages, steps] = [{}, null, null];
    return;
  }
  const [page, server, { recipes }] = await Promise.all([import("./zh"), import("./zh-messages"), import("./zh-recipes")]);
  [words, messages, steps] = [page.zh, new Catalogue([...recipes, ...server.messages]), new Catalogue(server.steps)];
}
/** The text in the chosen language, with `{name}` replaced. */
export const t = (text: string, values: Values = {}): string => fill(words[text] ?? text, values);
/** The text for one, or for another number `n` of something. */
export const tn = (n: number, one: string, many: string): string => (n === 1 ? t(one) : t(many, { n: n.toLocaleString() }));
/** What the server says, in the chosen language. */
export const translateMessage = (message: string): string => messages?.translate(message) ?? message;
/** The name of a step of the reasoning, in the chosen language. */
export const translateStep = (name: string): string => steps?.translate(name) ?? name;
