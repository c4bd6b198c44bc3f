// Schema: types and relations with their counts, and how the schema grew.
import { at, get } from "../api";
import { t } from "../i18n";
import { useShared } from "../state";
import { Empty, nameType, Problem, useLoad } from "../ui";

interface Count {
  name: string;
  count: number;
}
interface Change {
  kind?: string;
  action?: string;
  added: { name: string; kind: string }[];
  removed: { name: string; kind: string }[];
  why?: string[];
  reverted?: boolean;
}
interface SchemaShown {
  types: Count[];
  relations: Count[];
  history: { steps: Change[] } | null;
}
const MOST = 60;

function Bars({ rows, label }: { rows: Count[]; label: string }) {
  const most = Math.max(1, ...rows.map((row) => row.count));
  return (
    <ul class="bars" aria-label={label}>
      {rows.slice(0, MOST).map((row) => (
        <li key={row.name}>
          <span>{nameType(row.name)}</span>
          <span class="bar" style={{ width: `${(100 * row.count) / most}%` }} />
          <span class="number">{row.count.toLocaleString()}</span>
        </li>
      ))}
    </ul>
  );
}

export function Schema() {
  const { workspace, status } = useShared();
  const [found, error, retry] = useLoad(() => get<SchemaShown>(at(workspace, "/schema")), [workspace, status?.generation]);
  return (
    <div class="page">
      <h1>{t("Schema")}</h1>
      <Problem error={error} onRetry={retry} />
      {found && (
        <>
          <section class="panel">
            <h2>{t("Types of entities")}</h2>
            {found.types.length ? <Bars rows={found.types} label={t("Types of entities")} /> : <Empty title={t("No types yet")} />}
          </section>
          <section class="panel">
            <h2>{t("Relations")}</h2>
            {found.relations.length ? (
              <Bars rows={found.relations} label={t("Relations")} />
            ) : (
              <p class="soft">{t("The facts are whole sentences without a named relation.")}</p>
            )}
          </section>
          {found.history && found.history.steps.length > 0 && (
            <section class="panel">
              <h2>{t("How it grew")}</h2>
              <ol>
                {found.history.steps.map((step, n) => (
                  <li key={n}>
                    {step.added.map((one) => `+ ${one.name}`).join(", ")} {step.removed.map((one) => `− ${one.name}`).join(", ")}
                    {step.why && <span class="small soft"> {step.why.join("; ")}</span>}
                    {step.reverted && <span class="state">{t("reverted")}</span>}
                  </li>
                ))}
              </ol>
            </section>
          )}
        </>
      )}
    </div>
  );
}
