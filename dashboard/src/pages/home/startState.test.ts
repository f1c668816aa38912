import { expect, test } from 'vitest';

import { readStart } from './startState';

test('what the browser remembers is read, whatever it is', () => {
  expect(readStart(null)).toEqual({ state: 'first', skipped: [] });
  expect(readStart('{"state":"hidden","skipped":["model"]}')).toEqual({ state: 'hidden', skipped: ['model'] });
  for (const broken of ['', 'null', '[]', '{"state":5,"skipped":"phone"}', '{"skipped":["other"]}']) {
    expect(readStart(broken)).toEqual({ state: 'first', skipped: [] });
  }
});
