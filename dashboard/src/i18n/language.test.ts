import { expect, it } from 'vitest';

import { detectLanguage } from './language';

it.each([
  ['de', ['en'], 'de'],
  [null, ['de-AT', 'en'], 'de'],
  [null, ['fr', 'en-GB'], 'en'],
  ['toString', [], 'en'],
] as const)('takes the stored language %s, else the first of %s that it has', (stored, preferred, language) => {
  expect(detectLanguage(stored, preferred)).toBe(language);
});
