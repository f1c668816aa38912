// Pinning by CID where there is no public network: the request is kept and shows where it stands.
import assert from "node:assert/strict";
import { failure, sdk } from "./server.mjs";

const { upload, files } = sdk();
const CID = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku";

const asked = await upload.public.cid(CID).name("far away").keyvalues({ from: "afar" });
assert.deepEqual([asked.cid, asked.name], [CID, "far away"]);
assert.ok(asked.id && asked.status);
const queue = await files.public.queue().cid(CID);
assert.deepEqual(queue.jobs.map((job) => job.id), [asked.id]);
assert.ok((await files.public.queue().sort("ASC").all()).length >= 1);
assert.equal(await files.public.deletePinRequest(asked.id), "OK");
assert.ok((await failure(upload.public.cid("no cid"))).statusCode);
console.log("done");
