// A field that proposes names while one types: arrow keys go through them, Enter chooses, Escape closes.
import { useEffect, useRef, useState } from "preact/hooks";

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
  onClose: () => void;
}
/** The proposal that a key leads to from the one before; -1 is the field itself. */
export function moveIn(count: number, from: number, key: string): number {
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  const step = key === "ArrowDown" ? 1 : -1;
  return ((from + 1 + step + count + 1) % (count + 1)) - 1;
}

export function Find(props: Props) {
  const { hits } = props;
  const [active, setActive] = useState(-1);
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => setActive(-1), [hits.map((one) => one.key).join()]);
  useEffect(() => list.current?.children[active]?.scrollIntoView({ block: "nearest" }), [active]);
  const onKey = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (event.key === "Escape" && (props.text || hits.length)) {
      event.preventDefault();
      event.stopPropagation(); // what is chosen stays chosen
      props.onClose();
    } else if (hits.length && (/^Arrow(Up|Down)$/.test(event.key) || (active >= 0 && /^(Home|End)$/.test(event.key)))) {
      event.preventDefault();
      setActive(moveIn(hits.length, active, event.key));
    }
  };
  const submit = (event: Event) => {
    event.preventDefault();
    const hit = hits[Math.max(0, active)];
    if (hit) props.onChoose(hit);
  };
  const open = hits.length > 0 || Boolean(props.nothing);
  return (
    <form class="find" role="search" onSubmit={submit}>
      <input
        type="search"
        role="combobox"
        aria-autocomplete="list"
        aria-expanded={open}
        aria-controls={open ? "find-hits" : undefined}
        aria-activedescendant={active >= 0 ? `hit-${active}` : undefined}
        aria-label={props.label}
        placeholder={props.placeholder}
        list={undefined}
        autocomplete="off"
        value={props.text}
        onInput={(e) => props.onText(e.currentTarget.value)}
        onKeyDown={onKey}
      />
      {hits.length > 0 && (
        <ul class="card hits" id="find-hits" role="listbox" aria-label={props.label} ref={list}>
          {hits.map((one, n) => (
            <li key={one.key} id={`hit-${n}`} role="option" aria-selected={n === active} onClick={() => props.onChoose(one)}>
              <span dir="auto">{one.name}</span> <span class="small soft">{one.type}</span>
            </li>
          ))}
        </ul>
      )}
      {!hits.length && props.nothing && (
        <p class="card hits soft small" id="find-hits" role="status">
          {props.nothing}
        </p>
      )}
    </form>
  );
}
