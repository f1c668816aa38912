// Without ROOST_SIGNATURE: upload, and tell what has to be signed. With it: add, get, delete the signature.
import assert from "node:assert/strict";
import { failure, file, sdk } from "./server.mjs";

const { upload, signatures } = sdk();
const { ROOST_SIGNATURE: signature, ROOST_ADDRESS: address, ROOST_CID: cid } = process.env;

if (signature) {
  assert.deepEqual(await signatures.public.add({ cid, signature, address }), { cid, signature });
  assert.equal((await failure(signatures.public.add({ cid, signature, address }))).statusCode, 409);
  assert.deepEqual(await signatures.public.get(cid), { cid, signature });
  assert.equal(await signatures.public.delete(cid), "OK");
  assert.equal((await failure(signatures.public.get(cid))).statusCode, 404);
} else {
  const { cid, created_at } = await upload.public.file(file("I wrote this", "mine.txt"));
  console.log(JSON.stringify({ cid, date: new Date(created_at).toISOString() }));
}
