/** Providers of models whose keys can be pasted: the name of the secret, and how their keys begin. */
export const PROVIDERS = [
  { id: 'anthropic', label: 'Anthropic', secret: 'ANTHROPIC_API_KEY', prefixes: ['sk-ant-'] },
  { id: 'openai', label: 'OpenAI', secret: 'OPENAI_API_KEY', prefixes: ['sk-proj-', 'sk-svcacct-', 'sk-'] },
  { id: 'openrouter', label: 'OpenRouter', secret: 'OPENROUTER_API_KEY', prefixes: ['sk-or-'] },
  { id: 'google', label: 'Google Gemini', secret: 'GEMINI_API_KEY', prefixes: ['AIza'] },
  { id: 'groq', label: 'Groq', secret: 'GROQ_API_KEY', prefixes: ['gsk_'] },
  { id: 'mistral', label: 'Mistral', secret: 'MISTRAL_API_KEY', prefixes: [] },
  { id: 'deepseek', label: 'DeepSeek', secret: 'DEEPSEEK_API_KEY', prefixes: [] },
  { id: 'xai', label: 'xAI', secret: 'XAI_API_KEY', prefixes: ['xai-'] },
  { id: 'cerebras', label: 'Cerebras', secret: 'CEREBRAS_API_KEY', prefixes: ['csk-'] },
  { id: 'together', label: 'Together AI', secret: 'TOGETHER_API_KEY', prefixes: ['tgp_'] },
] as const;

export type ProviderId = (typeof PROVIDERS)[number]['id'];

/** Return the provider whose keys begin like this one, by the longest beginning; null if none does. */
export function detectProvider(key: string): ProviderId | null {
  let best: { id: ProviderId; length: number } | null = null;
  for (const { id, prefixes } of PROVIDERS) {
    for (const prefix of prefixes) {
      if (key.startsWith(prefix) && prefix.length > (best?.length ?? 0)) best = { id, length: prefix.length };
    }
  }
  return best?.id ?? null;
}
