import { expect, test } from 'vitest';

import { parseUses } from './uses';

test.each([
  ['', null],
  [' ', null],
  ['1', 1],
  ['2147483647', 2147483647],
  ['0', undefined],
  ['-1', undefined],
  ['1.5', undefined],
  ['2147483648', undefined],
  ['many', undefined],
])('"%s" uses are %s', (text, uses) => {
  expect(parseUses(text)).toBe(uses);
});
