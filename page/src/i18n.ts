// Texts in the language of the page. The English text is the key; Chinese is loaded when chosen.
import type { Language } from "./state";

let words: Record<string, string> = {};
export async function loadLanguage(language: Language): Promise<void> {
  words = language === "zh" ? (await import("./zh")).zh : {};
}
/** The text in the chosen language, with `{name}` replaced. */
export function t(text: string, values: Record<string, string | number> = {}): string {
  return (words[text] ?? text).replace(/\{(\w+)\}/g, (all, name: string) => String(values[name] ?? all));
}
