// What goes to older addresses: who one is, and folders, whose names inside are kept.
import assert from "node:assert/strict";
import { failure, file, gatewayUrl, sdk } from "./server.mjs";

const roost = sdk();
assert.match((await roost.testAuthentication()).message, /^Congratulations/);
assert.equal((await failure(sdk("nonsense").testAuthentication())).statusCode, 401);

const inside = file("two", "b.txt", "text/plain");
Object.defineProperty(inside, "webkitRelativePath", { value: "trip/days/b.txt" });
const first = file("one", "a.txt", "text/plain");
Object.defineProperty(first, "webkitRelativePath", { value: "trip/a.txt" });
const folder = await roost.upload.public.fileArray([first, inside]).name("trip").keyvalues({ year: "2026" });
assert.match(folder.cid, /^bafybei/);
assert.deepEqual([folder.name, folder.number_of_files, folder.mime_type], ["trip", 2, "directory"]);
const flat = await roost.upload.public.fileArray([file("1", "1.txt"), file("2", "2.txt")]);
assert.equal(flat.name, "folder_from_sdk");
assert.deepEqual((await roost.files.public.get(folder.id)).keyvalues, { year: "2026" });
assert.equal(await (await fetch(`${gatewayUrl}/ipfs/${folder.cid}/days/b.txt`)).text(), "two");
console.log("done");
