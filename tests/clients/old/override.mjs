// `node --import ./override.mjs` is what an entry in DNS would be, and a server at port 443: the name leads to a port here.
import https from "node:https";

const { createConnection } = https.globalAgent;

https.globalAgent.createConnection = function (options, ...rest) {
  assertKnown(options.host);
  const here = { ...options, host: "127.0.0.1", port: Number(process.env.ROOST_TLS), servername: options.host };
  return createConnection.call(this, here, ...rest);
};

function assertKnown(host) {
  if (host !== "api.pinata.cloud") throw new Error(`${host} was not expected.`);
}
