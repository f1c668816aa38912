// Lists with their filters and pages, notes, groups, deletion.
import assert from "node:assert/strict";
import { collected, failure, file, sdk } from "./server.mjs";

const roost = sdk();
const { files, groups, upload } = roost;

const made = [];
for (const name of ["a", "b", "c", "d", "e"]) {
  made.push(await upload.private.file(file(`content of ${name}`, `${name}.txt`)).keyvalues({ letter: name }));
}
const [a, b, c] = made;
const names = (list) => list.map((one) => one.name).sort();

// Pages, whole lists, and each filter.
const page = await files.private.list().limit(2).order("ASC");
assert.deepEqual(page.files.map((one) => one.id), [a.id, b.id]);
assert.ok(page.next_page_token);
const next = await files.private.list().limit(2).order("ASC").pageToken(page.next_page_token);
assert.equal(next.files[0].id, c.id);
assert.equal((await files.private.list().limit(2).all()).length, 5);
assert.equal((await collected(files.private.list().limit(2))).length, 5);
assert.deepEqual((await files.private.list().keyvalues({ letter: "b" })).files.map((one) => one.id), [b.id]);
assert.deepEqual((await files.private.list().name("c.txt")).files.map((one) => one.id), [c.id]);
assert.deepEqual((await files.private.list().cid(a.cid)).files.map((one) => one.id), [a.id]);
assert.equal((await files.private.list().mimeType("text/plain")).files.length, 5);
assert.equal((await files.private.list().mimeType("image/png")).files.length, 0);
assert.equal((await files.public.list()).files.length, 0);
assert.equal((await files.public.list().cid(a.cid)).files.length, 0);

// One file, and what can be changed about it.
assert.equal((await files.private.get(a.id)).cid, a.cid);
const renamed = await files.private.update({ id: a.id, name: "first", keyvalues: { letter: "A" } });
assert.deepEqual([renamed.name, renamed.keyvalues.letter], ["first", "A"]);
assert.equal((await failure(files.public.get(a.id))).statusCode, 404);
assert.equal((await failure(sdk(process.env.ROOST_OTHER).files.private.get(a.id))).statusCode, 404);
assert.equal((await failure(sdk("nonsense").files.private.list())).statusCode, 401);

// Groups.
const group = await groups.private.create({ name: "letters" });
assert.deepEqual([group.name, group.is_public], ["letters", false]);
assert.match(group.created_at, /Z$/);
const added = await groups.private.addFiles({ groupId: group.id, files: [a.id, b.id] });
assert.deepEqual(added, [{ id: a.id, status: "OK" }, { id: b.id, status: "OK" }]);
assert.deepEqual(names((await files.private.list().group(group.id)).files), ["b.txt", "first"]);
assert.equal((await files.private.list().noGroup(true)).files.length, 3);
assert.equal((await groups.private.removeFiles({ groupId: group.id, files: [b.id] }))[0].status, "OK");
assert.equal((await groups.private.update({ groupId: group.id, name: "signs" })).name, "signs");
assert.equal((await groups.private.get({ groupId: group.id })).name, "signs");
const more = await groups.private.create({ name: "more" });
assert.deepEqual(names(await groups.private.list().limit(1).all()), ["more", "signs"]);
assert.deepEqual(names((await groups.private.list().name("mor")).groups), ["more"]);
assert.deepEqual((await groups.public.list()).groups, []);
const shown = await groups.public.create({ name: "shown", isPublic: true });
assert.equal((await groups.public.get({ groupId: shown.id })).is_public, true);
assert.equal(await groups.private.delete({ groupId: more.id }), "OK");
assert.equal((await failure(groups.private.get({ groupId: more.id }))).statusCode, 404);

// Deletion tells of each file.
const gone = await files.private.delete([a.id, "00000000-0000-7000-8000-000000000000"]);
assert.equal(gone[0].status, "OK");
assert.notEqual(gone[1].status, "OK");
assert.equal((await failure(files.private.get(a.id))).statusCode, 404);
console.log("done");
