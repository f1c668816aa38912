import { expect, test } from 'vitest';

import { detectProvider, PROVIDERS } from './providers';

test('a provider is detected by the longest beginning of its keys', () => {
  expect(detectProvider('sk-ant-api03-abc')).toBe('anthropic');
  expect(detectProvider('sk-or-v1-abc')).toBe('openrouter');
  expect(detectProvider('sk-abc')).toBe('openai');
  expect(detectProvider('AIzaSyabc')).toBe('google');
  expect(detectProvider('0123456789abcdef')).toBeNull();
  expect(detectProvider('')).toBeNull();
});

test('each provider has a secret of its own', () => {
  expect(new Set(PROVIDERS.map(({ secret }) => secret)).size).toBe(PROVIDERS.length);
});
