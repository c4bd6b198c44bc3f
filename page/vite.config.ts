import { defineConfig } from "vite";

// Relative addresses, so that the page works under any sub-path of a reverse proxy.
export default defineConfig({
  base: "./",
  esbuild: { jsx: "automatic", jsxImportSource: "preact", legalComments: "none" },
  worker: { format: "es" },
  build: {
    outDir: "../src/clew/serve/static",
    emptyOutDir: true,
    assetsDir: "page",
    sourcemap: false,
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
});
