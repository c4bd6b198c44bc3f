// A page of a PDF as the server draws it, with the cited words marked.
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, at, get } from "./api";
import { t } from "./i18n";
import { Problem, useLoad } from "./ui";

interface Drawn {
  page: number;
  pages: number;
  width: number;
  height: number;
  image: string;
  boxes: [number, number, number, number][];
}
interface Props {
  workspace: string;
  id: string;
  page: number;
  span: { start: number; end: number };
  /** Called where the server has no file to draw; the text is shown instead. */
  onMissing: (why: string) => void;
}
const percent = (share: number): string => `${(100 * share).toFixed(3)}%`;

export function PdfPage({ workspace, id, page, span, onMissing }: Props) {
  const [number, setNumber] = useState(page);
  const mark = useRef<HTMLSpanElement>(null);
  useEffect(() => setNumber(page), [id, page, span.start]);
  const [drawn, error, retry] = useLoad(
    () => get<Drawn>(at(workspace, `/documents/${id}/pages/${number}`, { start: span.start, end: span.end })),
    [workspace, id, number, span.start, span.end],
  );
  const missing = error instanceof ApiError && error.status === 404;
  useEffect(() => {
    if (missing) onMissing(error.message);
  }, [missing]);
  useEffect(() => mark.current?.scrollIntoView({ block: "center" }), [drawn]);
  if (missing) return null;
  const ready = drawn?.page === number ? drawn : null;
  return (
    <div class="text">
      <div class="steps">
        <button class="quiet" aria-label={t("Page before")} disabled={number <= 1} onClick={() => setNumber(number - 1)}>
          ←
        </button>
        <span class="small">{drawn ? t("Page {n} of {all}", { n: number, all: drawn.pages }) : t("Page {n}", { n: number })}</span>
        <button class="quiet" aria-label={t("Page after")} disabled={!drawn || number >= drawn.pages} onClick={() => setNumber(number + 1)}>
          →
        </button>
      </div>
      <Problem error={error} onRetry={retry} />
      {ready ? (
        <div class="sheet" tabIndex={0} role="document" aria-label={t("Page {n}", { n: number })}>
          <img src={ready.image} width={ready.width} height={ready.height} alt={t("Page {n}; its words are under “Text”.", { n: number })} />
          {ready.boxes.map(([left, top, width, height], n) => (
            <span key={n} ref={n ? undefined : mark} class="marked" style={{ left: percent(left), top: percent(top), width: percent(width), height: percent(height) }} />
          ))}
        </div>
      ) : (
        !error && <div class="loading" role="status" aria-label={t("Loading")} />
      )}
    </div>
  );
}
