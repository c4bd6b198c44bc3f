// A field that proposes names while one types: arrow keys go through them, Enter chooses, Escape closes.
import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "./i18n";

export interface Hit {
  key: number;
  name: string;
  type: string;
}
interface Props {
  label: string;
  placeholder: string;
  text: string;
  hits: Hit[];
  /** Said below the field where nothing is proposed. */
  nothing?: string;
  onText: (text: string) => void;
  onChoose: (hit: Hit) => void;
  /** Escape, or the focus went elsewhere. */
  onClose: () => void;
}
/** The proposal that a key leads to from the one before; -1 is the field itself. */
export function moveIn(count: number, from: number, key: string): number {
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  const step = key === "ArrowDown" ? 1 : -1;
  return ((from + 1 + step + count + 1) % (count + 1)) - 1;
}

let pressed = false;
globalThis.addEventListener?.("pointerdown", () => (pressed = true), true);
globalThis.addEventListener?.("pointerup", () => (pressed = false), true);
/** Waits for the end of a click: what stands below a list must not move away under it. */
function afterPress(act: () => void): void {
  if (pressed) addEventListener("pointerup", () => setTimeout(act), { once: true });
  else act();
}

/** The field and its proposals; `id` tells apart those of one page. */
export function Suggest(props: Props & { id: string; required?: boolean; search?: boolean }) {
  const { id, hits } = props;
  const [active, setActive] = useState(-1);
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => setActive(-1), [hits.map((one) => one.key).join()]);
  useEffect(() => list.current?.children[active]?.scrollIntoView({ block: "nearest" }), [active]);
  const onKey = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "Escape" && (hits.length || (props.search && props.text))) {
      event.preventDefault();
      event.stopPropagation(); // what is chosen stays chosen
      props.onClose();
    } else if (event.key === "Enter" && hits[active]) {
      event.preventDefault();
      props.onChoose(hits[active]);
    } else if (event.key === "Enter" && !props.search) {
      props.onClose(); // the form is sent with what was typed
    } else if (hits.length && (/^Arrow(Up|Down)$/.test(event.key) || (active >= 0 && /^(Home|End)$/.test(event.key)))) {
      event.preventDefault();
      setActive(moveIn(hits.length, active, event.key));
    }
  };
  const open = hits.length > 0 || Boolean(props.nothing);
  return (
    <div class="suggest">
      <input
        type={props.search ? "search" : "text"}
        role="combobox"
        aria-autocomplete="list"
        aria-expanded={open}
        aria-controls={open ? `${id}-hits` : undefined}
        aria-activedescendant={active >= 0 ? `${id}-hit-${active}` : undefined}
        aria-label={props.label}
        placeholder={props.placeholder}
        list={undefined}
        autocomplete="off"
        required={props.required}
        value={props.text}
        onInput={(e) => props.onText(e.currentTarget.value)}
        onKeyDown={onKey}
        onBlur={props.search ? undefined : () => afterPress(props.onClose)}
      />
      {hits.length > 0 && (
        // A press keeps the focus in the field, which else would close the list before the click.
        <ul class="card hits" id={`${id}-hits`} role="listbox" aria-label={t("Suggestions")} ref={list} onMouseDown={(e) => e.preventDefault()}>
          {hits.map((one, n) => (
            <li key={one.key} id={`${id}-hit-${n}`} role="option" aria-selected={n === active} onClick={() => props.onChoose(one)}>
              <span dir="auto">{one.name}</span> <span class="small soft">{one.type}</span>
            </li>
          ))}
        </ul>
      )}
      {!hits.length && props.nothing && (
        <p class="card hits soft small" id={`${id}-hits`} role="status">
          {props.nothing}
        </p>
      )}
    </div>
  );
}

/** A search of its own: Enter takes the first proposal. */
export function Find(props: Props) {
  const submit = (event: Event) => {
    event.preventDefault();
    if (props.hits[0]) props.onChoose(props.hits[0]);
  };
  return (
    <form class="find" role="search" onSubmit={submit}>
      <Suggest {...props} id="find" search />
    </form>
  );
}
