// Loaded before the engine: resolves and reads the engine's own modules without Node's searches. The engine consists of
// some 7,000 ES modules that import each other by relative paths; `.mjs` has one meaning, and none of them is a link.
// Everything else is left to Node.
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = pathToFileURL("/engine/oc/node_modules/openclaw/dist/").href;
const isOwn = (url) => url.startsWith(root) && url.endsWith(".mjs");

registerHooks({
  resolve(specifier, context, next) {
    if (specifier.startsWith(".") && context.parentURL?.startsWith(root) && !context.conditions?.includes("require")) {
      const { href } = new URL(specifier, context.parentURL);
      if (isOwn(href)) return { url: href, format: "module", shortCircuit: true };
    }
    return next(specifier, context);
  },
  load(url, context, next) {
    if (context.format === "module" && isOwn(url)) {
      try {
        return { format: "module", source: readFileSync(fileURLToPath(url), "utf8"), shortCircuit: true };
      } catch (error) {
        if (error.code === "ENOENT") error.code = "ERR_MODULE_NOT_FOUND"; // as Node's own search says it
        throw error;
      }
    }
    return next(url, context);
  },
});
