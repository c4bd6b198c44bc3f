import { defineConfig } from "vite";

// The parts of an exported graph as one script and one style sheet, which Python writes into the file.
export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  define: { "process.env.NODE_ENV": '"production"' },
  publicDir: false,
  build: {
    outDir: "../src/clew/export/page",
    emptyOutDir: true,
    sourcemap: false,
    target: "es2022",
    cssCodeSplit: false,
    lib: { entry: "src/export.tsx", formats: ["iife"], name: "clew", fileName: () => "graph.js", cssFileName: "graph" },
  },
});
