// The steps of an agent as a tree that grows while it works.
import type { ShownStep } from "../ask-model";
import { t } from "../i18n";
import { countCalls } from "../ui";

interface Branch {
  step: ShownStep;
  below: Branch[];
}
/** Nests a flat list of steps by their depth. */
export function nest(steps: ShownStep[]): Branch[] {
  const roots: Branch[] = [];
  const path: Branch[] = [];
  for (const step of steps) {
    const branch = { step, below: [] };
    const depth = Math.min(step.depth, path.length);
    path.length = depth;
    (path[depth - 1]?.below ?? roots).push(branch);
    path.push(branch);
  }
  return roots;
}

export function Reasoning({ steps }: { steps: ShownStep[] }) {
  return <Level branches={nest(steps)} />;
}
function Level({ branches }: { branches: Branch[] }) {
  return (
    <ul class="reasoning">
      {branches.map((branch, n) => (
        <li key={n} class={branch.step.open ? "open" : ""}>
          <Line step={branch.step} />
          {branch.below.length > 0 && <Level branches={branch.below} />}
        </li>
      ))}
    </ul>
  );
}
function Line({ step }: { step: ShownStep }) {
  const name = step.step.split("(")[0]!;
  const calls = step.usage?.calls ?? 0;
  return (
    <div class="step">
      <div class="step-head">
        <span class="step-name">{name}</span>
        <span class="small soft">
          {step.open
            ? t("working …")
            : [
                step.seconds !== undefined ? t("{n} s", { n: step.seconds.toFixed(2) }) : "",
                calls ? countCalls(calls) : "",
              ]
                .filter(Boolean)
                .join(" · ")}
        </span>
      </div>
      {step.input && <p class="step-in">{step.input}</p>}
      {step.output && <p class="step-out">{step.output}</p>}
    </div>
  );
}
