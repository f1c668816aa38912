import { expect, test } from 'vitest';

import { formatBytes } from './bytes';

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1_000, '1 KB'],
  [1_550_000, '1.6 MB'],
  [25e9, '25 GB'],
  [2e16, '20,000 TB'],
])('%d bytes are %s', (bytes, words) => {
  expect(formatBytes(bytes, 'en')).toBe(words);
});

test('numbers are written as the language does', () => {
  expect(formatBytes(1_500, 'de')).toBe('1,5 KB');
});
