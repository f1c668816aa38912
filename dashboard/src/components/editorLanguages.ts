import type { LanguageSupport } from '@codemirror/language';

const LANGUAGES: Readonly<Record<string, () => Promise<LanguageSupport>>> = {
  json: async () => (await import('@codemirror/lang-json')).json(),
  js: async () => (await import('@codemirror/lang-javascript')).javascript(),
  ts: async () => (await import('@codemirror/lang-javascript')).javascript({ typescript: true }),
  md: async () => (await import('@codemirror/lang-markdown')).markdown(),
  py: async () => (await import('@codemirror/lang-python')).python(),
  yaml: async () => (await import('@codemirror/lang-yaml')).yaml(),
};
const ALIASES: Readonly<Record<string, string>> = { yml: 'yaml', mjs: 'js', cjs: 'js', jsx: 'js', tsx: 'ts', json5: 'js' };

/** Load what colours a file with this ending. */
export function loadLanguage(ending: string): Promise<LanguageSupport> | undefined {
  return LANGUAGES[ALIASES[ending] ?? ending]?.();
}
