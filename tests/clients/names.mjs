// Names below `localhost` are this machine (RFC 6761, 6.3), which resolvers of small containers do not know.
// `node --import ./names.mjs` is what a line in /etc/hosts would be.
import dns from "node:dns";

const lookup = dns.lookup;

dns.lookup = (name, options, callback) => {
  if (!name.endsWith(".localhost")) return lookup(name, options, callback);
  const done = callback ?? options;
  const all = typeof options === "object" && options.all;
  process.nextTick(() => (all ? done(null, [{ address: "127.0.0.1", family: 4 }]) : done(null, "127.0.0.1", 4)));
};
