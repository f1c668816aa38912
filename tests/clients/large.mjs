// Above 90 MiB the SDK speaks TUS, in its own dialect: no version header, chunks of 50 MiB and one byte.
import assert from "node:assert/strict";
import { file, sdk } from "./server.mjs";

const SIZE = 94_371_841;
const roost = sdk();
const content = Buffer.alloc(SIZE);
for (let at = 0; at + 4 <= SIZE; at += 65_536) content.writeUInt32LE(at, at);

const large = await roost.upload.private.file(file(content, "large.bin")).name("large").keyvalues({ kind: "large" });
assert.deepEqual([large.size, large.name, large.keyvalues], [SIZE, "large", { kind: "large" }]);
assert.equal(large.cid, process.env.ROOST_WANTED);
assert.equal((await roost.files.private.get(large.id)).cid, large.cid);
console.log("done");
