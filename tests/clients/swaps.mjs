// A swap shows on gateways that have the plugin.
import assert from "node:assert/strict";
import { api, failure, file, sdk } from "./server.mjs";

const { upload, gateways, files } = sdk();
const text = await upload.public.file(file("plain words", "a.txt", "text/plain"));
const gateway = process.env.ROOST_GATEWAY;
const other = await upload.public.file(file("other words", "b.txt", "text/plain"));
const headers = { Authorization: `Bearer ${process.env.ROOST_KEY}`, "Content-Type": "application/json" };
const rows = (await (await fetch(`${api}/ipfs/gateways`, { headers })).json()).data.rows;
const { id } = rows.find((row) => row.domain === gateway);
const installing = { method: "POST", headers, body: JSON.stringify({ plugin_id: 2 }) };
assert.equal((await fetch(`${api}/gateways/plugins/${id}`, installing)).status, 200);
assert.equal((await files.public.addSwap({ cid: text.cid, swapCid: other.cid })).mapped_cid, other.cid);
assert.equal((await gateways.public.get(text.cid)).data, "other words");
const history = await files.public.getSwapHistory({ cid: text.cid, domain: gateway });
assert.equal(history[0].mapped_cid, other.cid);
await files.public.deleteSwap(text.cid);
assert.equal((await gateways.public.get(text.cid)).data, "plain words");
console.log("done");
