// Keys: who may use this server, made and revoked by an admin.
import { useRef, useState } from "preact/hooks";
import { call, get, post } from "../api";
import { t } from "../i18n";
import { enter, toast, useShared } from "../state";
import { describe, formatMoney, Icon, Problem, useLoad } from "../ui";

interface Key {
  id: string;
  name: string;
  grants: Record<string, string>;
  labels: string[] | null;
  expires: number | null;
  revoked: number | null;
  used: number | null;
}
const day = (seconds: number | null): string => (seconds === null ? "" : new Date(1000 * seconds).toLocaleDateString());
const isOver = (key: Key): boolean => key.revoked !== null || (key.expires !== null && key.expires * 1000 < Date.now());

interface Own extends Key {
  limits: { requests_per_minute: number | null; calls_per_day: number | null; money_per_day: number | null };
  spent: { calls: number; money: number };
}
/** What the key of this page may use, and what it used today. */
export function Budget() {
  const [own, error] = useLoad(() => get<Own>("keys/own"), []);
  if (!own) return <Problem error={error} />;
  const of = (spent: string, most: string | null) => (most === null ? t("{n}, no limit", { n: spent }) : t("{n} of {all}", { n: spent, all: most }));
  const { limits, spent } = own;
  const shown: [string, string][] = [
    ["Your key", own.id === "local" ? t("none is needed here") : own.name],
    ["Model calls today", of(String(spent.calls), limits.calls_per_day?.toLocaleString() ?? null)],
    ["Money today", of(formatMoney(spent.money), limits.money_per_day === null ? null : `$${limits.money_per_day}`)],
    ["Requests a minute", limits.requests_per_minute?.toLocaleString() ?? t("as the server sets it")],
  ];
  return (
    <section class="panel">
      <h2>{t("Budget")}</h2>
      <dl class="columns">
        {shown.map(([name, value]) => (
          <div key={name}>
            <dt>{t(name)}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

export function Keys() {
  const [found, error, reload] = useLoad(() => get<{ keys: Key[] }>("keys"), []);
  const [token, setToken] = useState("");
  const [sure, setSure] = useState("");
  const revoke = async (key: Key) => {
    try {
      await call("DELETE", `keys/${key.id}`);
      toast(t("Revoked: {name}", { name: key.name }));
      reload();
    } catch (problem) {
      toast(describe(problem));
    }
    setSure("");
  };
  const local = found?.keys.length === 0;
  return (
    <section class="panel" aria-label={t("Keys")}>
      <h2>{t("Keys")}</h2>
      <Problem error={error} onRetry={reload} />
      {local && <p class="soft small">{t("No key was made yet: whoever reaches this address may do everything. From the first key on, this page asks for one.")}</p>}
      {token && <NewToken token={token} onClose={() => setToken("")} />}
      {found && found.keys.length > 0 && (
        <div class="scroll" tabIndex={0} role="region" aria-label={t("Keys")}>
          <table>
            <thead>
              <tr>
                {["Name", "May", "Labels", "Last used", "Expires"].map((name) => (
                  <th key={name} scope="col">
                    {t(name)}
                  </th>
                ))}
                <td />
              </tr>
            </thead>
            <tbody>
              {found.keys.map((key) => (
                <tr key={key.id} class={isOver(key) ? "over" : ""}>
                  <th scope="row">{key.name}</th>
                  <td>
                    {Object.entries(key.grants)
                      .map(([name, scope]) => `${name === "*" ? t("everywhere") : name}: ${t(scope)}`)
                      .join(", ")}
                  </td>
                  <td>{key.labels === null ? t("all") : key.labels.join(", ") || t("unlabelled only")}</td>
                  <td>{day(key.used) || t("never")}</td>
                  <td>{key.revoked ? t("revoked") : day(key.expires) || t("never")}</td>
                  <td>
                    {!isOver(key) &&
                      (sure === key.id ? (
                        <button class="quiet danger" onClick={() => void revoke(key)}>
                          {t("Revoke for good")}
                        </button>
                      ) : (
                        <button class="quiet" aria-label={t("Revoke {name}", { name: key.name })} onClick={() => setSure(key.id)}>
                          {t("Revoke")}
                        </button>
                      ))}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {found && (
        <NewKey
          key={String(local)}
          first={local}
          onMade={(made) => {
            setToken(made);
            if (local) void enter(made, false).then(reload);
            else reload();
          }}
        />
      )}
    </section>
  );
}

function NewToken({ token, onClose }: { token: string; onClose: () => void }) {
  return (
    <div class="note" role="status">
      <p>{t("Copy the key now: it is shown only once and stored nowhere.")}</p>
      <div class="row">
        <code class="token" tabIndex={0}>
          {token}
        </code>
        <button class="quiet" onClick={() => void navigator.clipboard.writeText(token).then(() => toast(t("Copied.")))}>
          <Icon name="copy" /> {t("Copy")}
        </button>
        <button class="quiet" onClick={onClose}>
          {t("Done")}
        </button>
      </div>
    </div>
  );
}

function NewKey({ first, onMade }: { first: boolean; onMade: (token: string) => void }) {
  const { workspaces, workspace } = useShared();
  const [name, setName] = useState("");
  const [where, setWhere] = useState(first ? "*" : workspace);
  const [scope, setScope] = useState(first ? "admin" : "read");
  const [labels, setLabels] = useState("");
  const [all, setAll] = useState(false);
  const [days, setDays] = useState("");
  const [error, setError] = useState<unknown>(null);
  const form = useRef<HTMLDetailsElement>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    const held = labels.split(/[\s,]+/).filter(Boolean);
    const body = { name, grants: { [where]: scope }, labels: all ? [] : held, all_labels: all, days: days ? Number(days) : null };
    try {
      onMade((await post<{ token: string }>("keys", body)).token);
      setName("");
      setError(null);
      if (form.current) form.current.open = false;
    } catch (problem) {
      setError(problem);
    }
  };
  const admins = workspaces.filter((one) => one.scope === "admin");
  return (
    <details ref={form}>
      <summary>{t("New key")}</summary>
      <form class="fields" onSubmit={(e) => void submit(e)}>
        <label>
          {t("Name")}
          <input value={name} maxLength={100} required onInput={(e) => setName(e.currentTarget.value)} />
        </label>
        <div class="row">
          <select aria-label={t("Workspace")} value={where} disabled={first} onChange={(e) => setWhere(e.currentTarget.value)}>
            <option value="*">{t("everywhere")}</option>
            {admins.map((one) => (
              <option key={one.name}>{one.name}</option>
            ))}
          </select>
          <select aria-label={t("Scope")} value={scope} disabled={first} onChange={(e) => setScope(e.currentTarget.value)}>
            {["read", "write", "admin"].map((one) => (
              <option key={one} value={one}>
                {t(one)}
              </option>
            ))}
          </select>
        </div>
        <label>
          {t("Labels of documents it may see; empty for none")}
          <input value={labels} placeholder="team=legal" disabled={all} onInput={(e) => setLabels(e.currentTarget.value)} />
        </label>
        <label class="check">
          <input type="checkbox" checked={all} onChange={(e) => setAll(e.currentTarget.checked)} />
          {t("It sees every document, whatever its labels")}
        </label>
        <label>
          {t("Days until it expires; empty for never")}
          <input type="number" min="1" max="3650" value={days} onInput={(e) => setDays(e.currentTarget.value)} />
        </label>
        <Problem error={error} />
        <div>
          <button class="quiet">{t("Make the key")}</button>
        </div>
      </form>
    </details>
  );
}
