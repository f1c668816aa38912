// Payment instructions: what must be paid for private files.
import assert from "node:assert/strict";
import { failure, file, sdk } from "./server.mjs";

const { upload, x402, files } = sdk();
const cent = {
  asset: "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
  pay_to: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
  network: "base",
  amount: "10000",
  description: "A cent",
};
const request = { name: "articles", payment_requirements: [cent], description: "All articles" };
const { data: made } = await x402.createPaymentInstruction(request);
assert.deepEqual(made, { ...request, id: made.id, version: 1, created_at: made.created_at });
const { data: second } = await x402.createPaymentInstruction({
  name: "second",
  payment_requirements: [{ ...cent, network: "eip155:84532", asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e" }],
});
assert.deepEqual((await x402.getPaymentInstruction(made.id)).data, made);

const first = (await x402.listPaymentInstructions({ limit: 1 })).data;
assert.deepEqual(first.payment_instructions, [second]);
const rest = (await x402.listPaymentInstructions({ pageToken: first.next_page_token })).data;
assert.deepEqual(rest.payment_instructions, [made]);
assert.ok(!rest.next_page_token);
assert.deepEqual((await x402.listPaymentInstructions({ name: "artic" })).data.payment_instructions, [made]);
assert.deepEqual((await x402.listPaymentInstructions({ id: second.id })).data.payment_instructions, [second]);

const renamed = (await x402.updatePaymentInstruction(made.id, { name: "texts" })).data;
assert.deepEqual(renamed, { ...made, name: "texts", version: 2 });

const one = await upload.private.file(file("paid content", "a.txt", "text/plain"));
const two = await upload.private.file(file("more paid content", "b.txt", "text/plain"));
const attached = (await x402.addCid(made.id, one.cid)).data;
assert.deepEqual(attached, { payment_instruction_id: made.id, cid: one.cid, created_at: attached.created_at });
await x402.addCid(made.id, two.cid);
assert.equal((await failure(x402.addCid(second.id, one.cid))).statusCode, 409);
const page = (await x402.listCids(made.id, { limit: 1 })).data;
assert.deepEqual(page.cids, [two.cid]);
assert.deepEqual((await x402.listCids(made.id, { pageToken: page.next_page_token })).data.cids, [one.cid]);
assert.deepEqual((await x402.listPaymentInstructions({ cid: one.cid })).data.payment_instructions, [renamed]);

assert.equal((await failure(x402.deletePaymentInstruction(made.id))).statusCode, 409);
assert.deepEqual((await x402.removeCid(made.id, one.cid)).data, {});
await files.private.delete([two.id]);
assert.deepEqual((await x402.listCids(made.id)).data.cids, []);
assert.deepEqual((await x402.deletePaymentInstruction(made.id)).data, {});
assert.equal((await failure(x402.getPaymentInstruction(made.id))).statusCode, 404);

const odd = { name: "odd", payment_requirements: [{ ...cent, amount: "0.01" }] };
assert.match((await failure(x402.createPaymentInstruction(odd))).message, /payment_requirements\.0: amount must be/);
const reader = sdk(process.env.ROOST_READER).x402;
assert.equal((await failure(reader.createPaymentInstruction(request))).statusCode, 403);
assert.equal((await failure(sdk(process.env.ROOST_OTHER).x402.getPaymentInstruction(second.id))).statusCode, 404);
console.log("done");
