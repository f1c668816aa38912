import type { components } from './schema';

export type ModelProvider = components['schemas']['ModelProviderRecord'];

/** Return the provider whose keys begin like this one, by the longest beginning; undefined if none does. */
export function detectProvider(key: string, providers: readonly ModelProvider[]): ModelProvider | undefined {
  const fits = providers.flatMap((provider) =>
    provider.keyPrefixes.filter((prefix) => key.startsWith(prefix)).map((prefix) => ({ provider, prefix })),
  );
  return fits.sort((one, other) => other.prefix.length - one.prefix.length)[0]?.provider;
}
