import { expect, test } from 'vitest';

import { helpAddress } from './help';

test.each([
  ['/', 'home'],
  ['/agents', 'agents'],
  ['/agents/new', 'agents-new'],
  ['/agents/$id/chat', 'agent-chat'],
  ['/storage/files', 'storage-files'],
])('the section of %s is %s', (route, section) => {
  expect(helpAddress(route)).toBe(`/docs/guides/dashboard/#${section}`);
});
