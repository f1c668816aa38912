import { expect, test } from 'vitest';

import { newestDays } from './usage';

test('the newest days end today, in UTC', () => {
  expect(newestDays(7, new Date('2026-03-03T23:59:00Z'))).toEqual({ from: '2026-02-25', to: '2026-03-03' });
});
