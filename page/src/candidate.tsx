// The short answer above the text: large where it is sure, and said to be a guess where it is not.
import type { ComponentChild } from "preact";
import type { Answer } from "./api";
import { t } from "./i18n";
import { isSure } from "./share";

interface Props {
  answer: Answer;
  /** Numbers of the citations that stand with it. */
  marks: number[];
  cite: (number: number) => ComponentChild;
}
export function Candidate({ answer, marks, cite }: Props) {
  const cited = marks.map((number) => <span key={number}>{cite(number)}</span>);
  if (isSure(answer))
    return (
      <p class="candidate">
        <span class="short">{answer.candidate}</span> {cited}
      </p>
    );
  return (
    <p class="candidate unsure">
      <span class="small soft">{t("Not sure, perhaps:")}</span> <span class="short">{answer.candidate}</span> {cited}
    </p>
  );
}
