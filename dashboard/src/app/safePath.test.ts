import { expect, test } from 'vitest';

import { safePath } from './safePath';

const ORIGIN = 'http://localhost:8642';
const OTHERS = ['//evil.example', '/\\evil.example', '\\\\evil.example', '/\t/evil.example', '/\n\\evil.example', '\t//evil.example'];

test.each(['/', '/agents/x/chat?a=b#c', '/.//evil.example', '/%2f%2fevil.example', '/?next=//evil.example'])(
  'the path %s is one of this server',
  (path) => expect(safePath(path, ORIGIN)).toBe(path),
);

test.each([...OTHERS, 'https://evil.example', 'javascript:alert(1)', 'data:text/html,x', '', 'agents', ' /', 1, null])(
  'the address %j is refused',
  (path) => expect(safePath(path, ORIGIN)).toBeUndefined(),
);
