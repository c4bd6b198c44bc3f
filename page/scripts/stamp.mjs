// Writes the hash of the sources beside the built files; a test compares it with the sources.
import { createHash } from "node:crypto";
import { copyFileSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const files = (folder) =>
  readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? files(path) : [path];
  });
const hash = createHash("sha256");
const named = [...files("src"), ...files("public"), "index.html", "package.json", "package-lock.json", "vite.config.ts", "vite.export.config.ts"];
for (const path of named.map((one) => one.replaceAll("\\", "/")).sort()) {
  hash.update(path + "\0");
  hash.update(readFileSync(path, "utf8").replaceAll("\r\n", "\n"));
}
writeFileSync("../src/clew/serve/static/sources.sha256", hash.digest("hex") + "\n");
// Reports have the colours of the page.
copyFileSync("src/tokens.css", "../src/clew/evaluate/report/tokens.css");
