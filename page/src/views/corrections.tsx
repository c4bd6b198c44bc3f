// Corrections of names: merge, split, and the list of both, each of which can be undone.
import { useState } from "preact/hooks";
import { at, get, post } from "../api";
import { EntityField, findEntity } from "../entities";
import { t } from "../i18n";
import { toast, useShared } from "../state";
import { describe, Problem, useLoad } from "../ui";

interface Correction {
  number: number;
  what: "merge" | "split";
  /** The entity's own name first; one that is gone is empty. */
  names: string[];
  documents: string[];
  time: number;
}
const NONE = Promise.resolve({ corrections: [] as Correction[] });

/** What was done, in one sentence. */
export function describeCorrection({ what, names, documents }: Omit<Correction, "number" | "time">): string {
  const [first, ...rest] = names.map((name) => name || t("a name that is gone"));
  const [a, b] = [first ?? "", rest.join("”, “")];
  if (documents.length) return t("“{a}” in {documents} was split off.", { a, documents: documents.join(", ") });
  if (what === "merge") return t("“{a}” and “{b}” are one entity now.", { a, b });
  return t("“{b}” was split off from “{a}”.", { a, b });
}

async function send(workspace: string, what: string, body: Record<string, unknown>): Promise<boolean> {
  try {
    await post(at(workspace, `/entities/${what}`), body);
    return true;
  } catch (error) {
    toast(describe(error));
    return false;
  }
}

/** Another name of the same, or a name that is not; `onDone` once the server has decided so. */
export function Correct({ entity, onDone }: { entity: { name: string; aliases: string[] }; onDone: () => void }) {
  const { workspace } = useShared();
  const [other, setOther] = useState("");
  const [busy, setBusy] = useState(false);
  const act = async (what: "merge" | "split", body: Record<string, string>) => {
    setBusy(true);
    if (await send(workspace, what, body)) onDone();
    setBusy(false);
  };
  const merge = async (event: Event) => {
    event.preventDefault();
    try {
      const found = await findEntity(workspace, other);
      if ([entity.name, ...entity.aliases].includes(found.name)) toast(t("Both are the same entity. Choose two different ones."));
      else await act("merge", { one: entity.name, other: found.name });
    } catch (error) {
      toast(describe(error));
    }
  };
  return (
    <details>
      <summary class="small">{t("Correct the names")}</summary>
      <div class="fields">
        <form class="row" onSubmit={(e) => void merge(e)}>
          <EntityField id="merge-with" label={t("Another name of the same")} value={other} onChange={setOther} />
          <button class="quiet" disabled={busy || !other.trim()}>
            {t("Merge")}
          </button>
        </form>
        {entity.aliases.map((alias) => (
          <div class="row" key={alias}>
            <button class="quiet" disabled={busy} onClick={() => void act("split", { name: entity.name, other: alias })}>
              {t("Split off “{name}”", { name: alias })}
            </button>
          </div>
        ))}
      </div>
    </details>
  );
}

/** Merges and splits by users, newest first; opened by itself after one was made. */
export function CorrectionList({ made, onUndone }: { made: number; onUndone: () => void }) {
  const { workspace, status } = useShared();
  const [open, setOpen] = useState(false);
  const [busy, setBusy] = useState(false);
  const shown = open || made > 0;
  const [found, error] = useLoad(
    () => (shown ? get<{ corrections: Correction[] }>(at(workspace, "/entities/corrections", { limit: 200 })) : NONE),
    [workspace, shown, made, status?.generation],
  );
  const undo = async (number: number) => {
    setBusy(true);
    if (await send(workspace, "undo", { correction: number })) {
      toast(t("Undone."));
      onUndone();
    }
    setBusy(false);
  };
  return (
    <details class="corrections" open={shown} onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>{t("Corrections")}</summary>
      <Problem error={error} />
      {shown && found?.corrections.length === 0 && <p class="soft small">{t("Nobody has merged or split a name.")}</p>}
      <div role="status">
        <ul class="facts">
          {found?.corrections.map((one) => (
            <li key={one.number}>
              <span>{describeCorrection(one)}</span>
              <span class="row spread">
                <span class="small soft">{new Date(one.time * 1000).toLocaleString()}</span>
                <button class="quiet" disabled={busy} aria-label={`${t("Undo")}: ${describeCorrection(one)}`} onClick={() => void undo(one.number)}>
                  {t("Undo")}
                </button>
              </span>
            </li>
          ))}
        </ul>
      </div>
    </details>
  );
}
