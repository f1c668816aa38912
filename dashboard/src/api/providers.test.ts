import { expect, test } from 'vitest';

import { detectProvider } from './providers';

const PROVIDERS = [
  { id: 'anthropic', label: 'Anthropic', secret: 'ANTHROPIC_API_KEY', keyPrefixes: ['sk-ant-'] },
  { id: 'openai', label: 'OpenAI', secret: 'OPENAI_API_KEY', keyPrefixes: ['sk-proj-', 'sk-'] },
  { id: 'openrouter', label: 'OpenRouter', secret: 'OPENROUTER_API_KEY', keyPrefixes: ['sk-or-'] },
  { id: 'mistral', label: 'Mistral', secret: 'MISTRAL_API_KEY', keyPrefixes: [] },
];

test('a provider is detected by the longest beginning of its keys', () => {
  const detected = (key: string) => detectProvider(key, PROVIDERS)?.id;
  expect(detected('sk-ant-api03-abc')).toBe('anthropic');
  expect(detected('sk-or-v1-abc')).toBe('openrouter');
  expect(detected('sk-abc')).toBe('openai');
  expect(detected('0123456789abcdef')).toBeUndefined();
  expect(detected('')).toBeUndefined();
});
