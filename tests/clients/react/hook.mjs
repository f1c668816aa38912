// `useUpload` of `pinata/react`: a page uploads to signed addresses, with no credential at all; large files in parts.
import assert from "node:assert/strict";
import { useUpload } from "pinata/react";
import { PinataSDK } from "pinata";
import { createElement } from "react";
import { act, create } from "react-test-renderer";

globalThis.IS_REACT_ACT_ENVIRONMENT = true;
const { ROOST_PORT: port, ROOST_KEY: key } = process.env;
const LARGE = 94_371_841; // one byte more than goes as a form
const roost = new PinataSDK({
  pinataJwt: key,
  endpointUrl: `http://api.localhost:${port}/v3`,
  uploadUrl: `http://uploads.localhost:${port}/v3`,
});
const signed = (more) => roost.upload.private.createSignedURL({ expires: 60, ...more });

async function page() {
  const shown = {};
  const Page = () => {
    Object.assign(shown, useUpload());
    return null;
  };
  await act(() => create(createElement(Page)));
  return shown;
}

async function until(condition) {
  for (const deadline = Date.now() + 30_000; !condition(); ) {
    assert.ok(Date.now() < deadline, "It took too long.");
    await act(() => new Promise((next) => setTimeout(next, 5)));
  }
}

// A small file is one form, which says whose it is to be.
const small = await page();
const options = { metadata: { name: "named", keyvalues: { by: "a page" } } };
await act(async () => small.upload(new File(["from a page"], "small.txt"), "private", await signed(), options));
assert.deepEqual([small.loading, small.progress, small.error], [false, 100, null]);
assert.deepEqual([small.uploadResponse.name, small.uploadResponse.keyvalues], ["named", { by: "a page" }]);
assert.equal((await roost.files.private.get(small.uploadResponse.id)).size, 11);

// A large one goes in parts; it rests where one says so, and goes on.
const large = await page();
const content = new File([new Uint8Array(LARGE).fill(7)], "large.bin");
const parts = { chunkSize: 20 * 1024 * 1024, metadata: { keyvalues: { size: "large" } } };
await act(async () => large.upload(content, "private", await signed(), parts));
large.pause();
await until(() => large.progress > 0);
assert.ok(large.progress < 100);
large.resume();
await until(() => large.progress === 100);
assert.deepEqual([large.loading, large.error], [false, null]);
const [kept] = (await roost.files.private.list().cid(large.uploadResponse)).files;
assert.deepEqual([kept.size, kept.name, kept.keyvalues], [LARGE, "large.bin", { size: "large" }]);

// One that is broken off is no file, and what an address does not let in is told.
const broken = await page();
await act(async () => broken.upload(new File([content, "more"], "broken.bin"), "private", await signed(), parts));
await act(async () => broken.cancel());
await until(() => !broken.loading);
assert.equal((await roost.files.private.list().name("broken.bin")).files.length, 0);
for (const file of [new File(["text"], "a.png"), content]) {
  const refused = await page();
  await act(async () => refused.upload(file, "private", await signed({ maxFileSize: 3 })));
  await until(() => refused.error !== null);
  assert.deepEqual([refused.loading, refused.error.statusCode], [false, 413]);
}
console.log("done");
