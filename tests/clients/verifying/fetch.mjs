// A node in JavaScript that believes no gateway: it asks for blocks one by one and checks each against its CID.
// `ROOST_WANTED` is a list of [CID, path, seconds]; printed is for each how many bytes came in that time, their SHA-256, and
// whether that is all.
import { createHash } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { trustlessGateway } from "@helia/block-brokers";
import { createHeliaHTTP } from "@helia/http";
import { httpGatewayRouting } from "@helia/routers";
import { unixfs } from "@helia/unixfs";
import { CID } from "multiformats/cid";

const { ROOST_GATEWAY: gateway, ROOST_WANTED: wanted } = process.env;
const helia = await createHeliaHTTP({
  blockBrokers: [trustlessGateway({ allowInsecure: true, allowLocal: true })],
  routers: [httpGatewayRouting({ gateways: [gateway] })],
});
const files = unixfs(helia);

async function fetched([cid, path, seconds]) {
  const hash = createHash("sha256");
  let length = 0;
  const all = async () => {
    for await (const piece of files.cat(CID.parse(cid), { path })) {
      hash.update(piece);
      length += piece.length;
    }
    return true;
  };
  // It goes on looking for another gateway when one has failed, and no signal ends that.
  const whole = await Promise.race([all().catch(() => false), setTimeout(1000 * seconds, false)]);
  return [length, hash.copy().digest("hex"), whole];
}

const found = [];
for (const one of JSON.parse(wanted)) found.push(await fetched(one));
process.stdout.write(JSON.stringify(found), () => process.exit(0));
