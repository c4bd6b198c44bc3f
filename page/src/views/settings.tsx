// Settings: what this server has, its model endpoint tested, budgets spent, recipes and parameters.
import { useState } from "preact/hooks";
import { at, get, type Recipe } from "../api";
import { t, translateMessage } from "../i18n";
import { isAdmin, useShared } from "../state";
import { Budget, Keys } from "./keys";
import { formatBytes, formatMoney, Icon, Problem, useLoad, Words } from "../ui";

interface Checks {
  recipe: string;
  extractor: string;
  checks: { name: string; state: "ok" | "missing" | "broken"; message: string }[];
}
interface RecipeStep {
  step: string;
  parameter: string;
  value: string;
  source: string;
}

export function SettingsView() {
  const { workspace, workspaces, status } = useShared();
  const scope = workspaces.find((one) => one.name === workspace)?.scope;
  return (
    <div class="page">
      <h1>{t("Settings")}</h1>
      {status && (
        <section class="panel">
          <h2>{t("This workspace")}</h2>
          <dl class="columns">
            {(
              [
                ["Workspace", workspace],
                ["Your scope", t(scope ?? "")],
                ["Embedder", status.embedder],
                ["Size on disk", formatBytes(status.bytes)],
                ["Money spent", formatMoney(status.spent)],
              ] as const
            ).map(([name, value]) => (
              <div key={name}>
                <dt>{t(name)}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      <Budget />
      {isAdmin() && <Endpoint />}
      {isAdmin() && <Keys />}
      <Recipes />
    </div>
  );
}

/** The model, the embedder and the knowledge base before what is installed. */
const sortChecks = (checks: Checks["checks"]): Checks["checks"] => {
  const isPart = (one: Checks["checks"][number]) => /^(extra |python$|sqlite$)/.test(one.name);
  return [...checks.filter((one) => !isPart(one)).reverse(), ...checks.filter(isPart)];
};
/** `extra pdf` and `model NAME` begin with a word of the page, what follows is a name. */
function nameCheck(name: string): string {
  const found = /^(extra|model) (.+)$/.exec(name);
  return found ? t(`${found[1]} {name}`, { name: found[2]! }) : t(name);
}
function Endpoint() {
  const { workspace } = useShared();
  const [found, error, again] = useLoad(() => get<Checks>(at(workspace, "/checks")), [workspace]);
  return (
    <section class="panel">
      <div class="row spread">
        <h2>{t("Model endpoint and parts")}</h2>
        <button class="quiet" onClick={again}>
          <Icon name="again" /> {t("Test again")}
        </button>
      </div>
      <p class="soft small">{t("Models, keys of models and budgets are set in clew.toml on the server; this page never sees them.")}</p>
      <Problem error={error} />
      {found ? (
        <div class="scroll" tabIndex={0} role="region" aria-label={t("Checks")}>
          <table class="stacked">
            <tbody>
              {sortChecks(found.checks).map((one, n) => (
                <tr key={n}>
                  <th scope="row">{nameCheck(one.name)}</th>
                  <td>
                    <span class={one.state === "ok" ? "state done" : one.state === "broken" ? "state failed" : "state"}>{t(one.state)}</span>
                  </td>
                  <td>
                    <Words text={translateMessage(one.message)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        !error && <div class="loading" role="status" aria-label={t("Loading")} />
      )}
    </section>
  );
}

function Recipes() {
  const { recipes } = useShared();
  const [filter, setFilter] = useState("");
  const words = filter.toLowerCase();
  const shown = recipes.filter((one) => `${one.name} ${one.about} ${translateMessage(one.about)} ${one.source}`.toLowerCase().includes(words));
  return (
    <section class="panel">
      <div class="row spread">
        <h2>{t("{n} recipes", { n: recipes.length })}</h2>
        <input
          type="search"
          placeholder={t("Filter")}
          aria-label={t("Filter recipes")}
          value={filter}
          onInput={(e) => setFilter(e.currentTarget.value)}
        />
      </div>
      <p class="soft small">{t("An agent and a retriever combine with a plus sign, such as graphsearch+pathrag.")}</p>
      {shown.map((one) => (
        <RecipeRow key={one.name} recipe={one} />
      ))}
    </section>
  );
}

function RecipeRow({ recipe }: { recipe: Recipe }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>
        <b>{recipe.name}</b> <span class="tag">{t(recipe.kind)}</span> <span class="soft small"><Words text={translateMessage(recipe.about)} /></span>
      </summary>
      {open && <RecipeSteps name={recipe.name} needs={recipe.needs} source={recipe.source} />}
    </details>
  );
}

function RecipeSteps({ name, needs, source }: { name: string; needs: string; source: string }) {
  const [found, error] = useLoad(() => get<{ steps: RecipeStep[] }>(`recipes/${encodeURIComponent(name)}`), [name]);
  return (
    <div class="pad small">
      <p>
        {t("Needs")}: <Words text={translateMessage(needs)} /> · {t("Source")}: <Words text={translateMessage(source)} />
      </p>
      <Problem error={error} />
      {found && (
        <div class="scroll" tabIndex={0} role="region" aria-label={t("Parameters of {name}", { name })}>
          <table>
            <thead>
              <tr>
                <th>{t("Step")}</th>
                <th>{t("Parameter")}</th>
                <th>{t("Value")}</th>
                <th>{t("Source")}</th>
              </tr>
            </thead>
            <tbody>
              {found.steps.map((one, n) => (
                <tr key={n}>
                  <td>{one.step}</td>
                  <td>{one.parameter}</td>
                  <td>{String(one.value)}</td>
                  <td>
                    <Words text={translateMessage(one.source)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}
