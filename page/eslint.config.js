import tseslint from "typescript-eslint";

export default tseslint.config(...tseslint.configs.recommended, {
  rules: {
    "no-restricted-properties": [
      "error",
      { property: "innerHTML", message: "Render nodes: markup of answers and documents is not trusted." },
      { property: "outerHTML", message: "Render nodes." },
      { property: "insertAdjacentHTML", message: "Render nodes." },
    ],
    "no-restricted-syntax": [
      "error",
      { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: "Render nodes." },
    ],
    "max-lines": ["error", 450],
    complexity: ["error", 14],
  },
}, {
  files: ["**/*.tsx"],
  rules: { complexity: ["error", 25] }, // each `&&` of a template counts
});
