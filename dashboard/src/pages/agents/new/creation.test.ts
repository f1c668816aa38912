import { expect, it } from 'vitest';

import { BY_CID, createCommand, SNAPSHOT } from './creation';

const NEW = { name: " Ada's ", engine: '', begin: '', origin: '', snapshot: '' };

it.each([
  [NEW, "roost agents create 'Ada'\\''s'"],
  [{ ...NEW, engine: 'hermes', begin: 'news' }, "roost agents create 'Ada'\\''s' --engine hermes --template news"],
  [{ ...NEW, begin: SNAPSHOT, origin: 'a1' }, "roost agents fork a1 'Ada'\\''s'"],
  [{ ...NEW, begin: SNAPSHOT, origin: 'a1', snapshot: 'bafy' }, "roost agents fork a1 'Ada'\\''s' --snapshot bafy"],
  [{ ...NEW, begin: SNAPSHOT, origin: BY_CID, snapshot: ' bafy ' }, "roost agents create 'Ada'\\''s' --snapshot bafy"],
  [{ ...NEW, origin: 'a1', snapshot: 'bafy' }, "roost agents create 'Ada'\\''s'"],
])('is the same on the command line: %o', (values, command) => {
  expect(createCommand(values)).toBe(command);
});
