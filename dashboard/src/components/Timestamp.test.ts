import { expect, it } from 'vitest';

import { relativeTime } from './Timestamp';

const NOW = new Date('2026-01-02T00:00:00Z');

it.each([
  ['2026-01-01T23:59:58Z', 'en', '2 seconds ago'],
  ['2026-01-01T21:00:00Z', 'de', 'vor 3 Stunden'],
  ['2026-01-01T00:00:00Z', 'en', 'yesterday'],
  ['2026-01-02T00:00:00Z', 'en', 'now'],
])('describes %s', (at, language, words) => {
  expect(relativeTime(new Date(at), NOW, language)).toBe(words);
});
