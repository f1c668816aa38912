// The protocol's own client, as it was published, while its server goes and comes again. `left`, `down` and `failed` are
// files by which this and the test wait for each other: the first part is there, the server is not, the client has noticed.
import assert from "node:assert/strict";
import { access, writeFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { Upload } from "tus-js-client";

const { ROOST_PORT: port, ROOST_KEY: key, ROOST_WANTED: wanted } = process.env;
const content = Buffer.alloc(3_000_000);
for (let at = 0; at + 4 <= content.length; at += 4_096) content.writeUInt32LE(at, at);
const asked = [];

async function until(name) {
  while (!(await access(name).then(() => true, () => false))) await setTimeout(10);
}

const cid = await new Promise((resolve, reject) => {
  let found = null;
  let sent = 0;
  new Upload(content, {
    endpoint: `http://uploads.localhost:${port}/v3/files`,
    headers: { Authorization: `Bearer ${key}` },
    chunkSize: 400_000,
    retryDelays: Array(100).fill(100),
    onBeforeRequest: async (request) => {
      asked.push(request.getMethod());
      if (sent >= 1_000_000) {
        await writeFile("left", "");
        await until("down");
      }
    },
    onChunkComplete: (_, bytes) => (sent = bytes),
    onShouldRetry: (error) => {
      writeFile("failed", String(error)).catch(reject);
      return true;
    },
    onAfterResponse: (_, response) => (found = response.getHeader("upload-cid") ?? found),
    onSuccess: () => resolve(found),
    onError: reject,
  }).start();
});
assert.equal(cid, wanted);
assert.equal(asked.filter((method) => method === "POST").length, 1); // it resumed, and did not start over
assert.ok(asked.includes("HEAD"));
console.log("done");
