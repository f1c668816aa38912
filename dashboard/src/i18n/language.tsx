import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';
import { I18nProvider } from 'react-aria-components';

/** Languages of the dashboard. Each area has a typed catalogue in all of them (`<area>.en.ts`, `<area>.de.ts`). */
export const LANGUAGES = { en: 'English', de: 'Deutsch' } as const;
export type Language = keyof typeof LANGUAGES;
export type Catalogue<T> = Readonly<Record<Language, T>>;

const STORAGE = 'roost.language';
const LOCALES: Record<Language, string> = { en: 'en-US', de: 'de-DE' };
const Context = createContext<{ language: Language; choose: (language: Language) => void }>({
  language: 'en',
  choose: () => undefined,
});

export function isLanguage(value: string | null | undefined): value is Language {
  return value !== null && value !== undefined && Object.hasOwn(LANGUAGES, value);
}

/** Return the language that was chosen on this device, else the first of the browser that the dashboard has. */
export function detectLanguage(stored: string | null, preferred: readonly string[]): Language {
  if (isLanguage(stored)) return stored;
  return preferred.map((tag) => tag.slice(0, 2).toLowerCase()).find(isLanguage) ?? 'en';
}

export function LanguageProvider({ children }: { children: ReactNode }) {
  const [language, setLanguage] = useState(() => detectLanguage(localStorage.getItem(STORAGE), navigator.languages));
  useEffect(() => {
    document.documentElement.lang = language;
  }, [language]);
  const value = useMemo(
    () => ({
      language,
      choose: (chosen: Language) => {
        localStorage.setItem(STORAGE, chosen);
        setLanguage(chosen);
      },
    }),
    [language],
  );
  return (
    <Context value={value}>
      <I18nProvider locale={LOCALES[language]}>{children}</I18nProvider>
    </Context>
  );
}

export const useLanguage = () => useContext(Context);

/** Return the texts of an area in the reader's language. */
export function useText<T>(catalogue: Catalogue<T>): T {
  return catalogue[useLanguage().language];
}
