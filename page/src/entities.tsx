// A field for the name of an entity, which proposes those that the server knows.
import { useEffect, useState } from "preact/hooks";
import { at, get, type Entity } from "./api";
import { Suggest, type Hit } from "./find";
import { t } from "./i18n";
import { dropMarks } from "./markup";
import { useShared } from "./state";
import { nameType } from "./ui";

const MOST = 8;
const fold = (text: string): string => text.normalize("NFKC").trim().toLowerCase().replace(/^(the|a|an) /, "");

/** The entities that a text may mean, asked for when one stops typing; none for an empty text. */
export function useEntities(text: string): Entity[] {
  const { workspace } = useShared();
  const [hits, setHits] = useState<Entity[]>([]);
  useEffect(() => {
    if (!text.trim()) return setHits([]);
    const control = new AbortController();
    const timer = setTimeout(() => {
      get<{ entities: Entity[] }>(at(workspace, "/entities", { query: text, limit: MOST }), control.signal).then(
        ({ entities }) => setHits(entities),
        () => setHits([]),
      );
    }, 180);
    return () => (clearTimeout(timer), control.abort());
  }, [text, workspace]);
  return hits;
}
export const toHits = (entities: Entity[]): Hit[] => entities.map((one) => ({ key: one.key, name: one.name, type: nameType(one.type) }));

/** The entity that is meant: called as it is written, else the first with the text in its name. */
export function chooseEntity(entities: Entity[], text: string): Entity | null {
  const wanted = fold(text);
  const called = entities.find((one) => [one.name, ...one.aliases].some((name) => fold(name) === wanted));
  return called ?? entities.find((one) => fold(one.name).includes(wanted)) ?? null;
}
/** Finds the entity that a user typed; an error that says so where there is none. */
export async function findEntity(workspace: string, text: string): Promise<Entity> {
  const { entities } = await get<{ entities: Entity[] }>(at(workspace, "/entities", { query: text, limit: MOST }));
  const found = chooseEntity(entities, text);
  if (!found) throw new Error(t("No entity is called “{name}”.", { name: text.trim() }));
  return found;
}

interface Props {
  id: string;
  label: string;
  value: string;
  onChange: (name: string) => void;
}
export function EntityField({ id, label, value, onChange }: Props) {
  const [typed, setTyped] = useState("");
  const found = useEntities(typed);
  // What only has to do with the text is proposed where nothing is called like it.
  const called = found.filter((one) => [one.name, ...one.aliases].some((name) => fold(name).includes(fold(typed))));
  const hits = called.length ? called : found;
  const type = (text: string) => (setTyped(text), onChange(text));
  return (
    <Suggest
      id={id}
      label={label}
      placeholder={label}
      text={value}
      hits={typed ? toHits(hits) : []}
      required
      onText={type}
      onChoose={({ name }) => (setTyped(""), onChange(name))}
      onClose={() => setTyped("")}
    />
  );
}

export interface SharedFact {
  key: number;
  text: string;
  relation: string;
  /** Whether its words name both ends; else they stand in the same passage only. */
  states: boolean;
}
/** A fact between two entities in short, and whether it only stands beside them. */
export function describeShared(fact: SharedFact): string {
  const text = fact.relation || dropMarks(fact.text);
  return fact.states ? text : t("stated in the same passage: {text}", { text });
}
