import { expect, it } from 'vitest';

import { retryDelay } from './connections';

it('waits longer after each failed attempt, up to 15 seconds', () => {
  expect([0, 1, 4, 30].map((attempt) => retryDelay(attempt, 1))).toEqual([500, 1000, 8000, 15_000]);
  expect(retryDelay(0, 0)).toBe(250);
});
