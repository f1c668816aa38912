// The public methods of a client of this package, each with the way to it: `files.public.list`.
const { default: fallback, ...named } = await import(process.env.ROOST_PACKAGE);
const client = new (named.PinataSDK ?? fallback)({ pinataJwt: "x", pinataJWTKey: "x" });
const found = new Set();

function walk(object, way) {
  for (let kind = Object.getPrototypeOf(object); kind && kind !== Object.prototype; kind = Object.getPrototypeOf(kind)) {
    for (const name of Object.getOwnPropertyNames(kind)) {
      const own = name !== "constructor" && name !== "then" && name !== "updateConfig" && typeof object[name] === "function";
      if (own) found.add([...way, name].join("."));
    }
  }
  for (const [name, inner] of Object.entries(object)) {
    if (inner && typeof inner === "object" && !["config", "query"].includes(name)) walk(inner, [...way, name]);
  }
}

walk(client, []);
console.log(JSON.stringify([...found].sort()));
