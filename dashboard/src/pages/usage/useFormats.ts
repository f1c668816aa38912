import { useMemo } from 'react';

import { formatBytes } from '../../components/bytes';
import { useLanguage } from '../../i18n/language';

/** Days and numbers in the reader's language: exact, short for axes, and bytes. */
export function useFormats() {
  const { language } = useLanguage();
  return useMemo(() => {
    const exact = new Intl.NumberFormat(language);
    const short = new Intl.NumberFormat(language, { notation: 'compact', maximumFractionDigits: 1 });
    const day = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeZone: 'UTC' });
    return {
      /** A day like 2026-01-31. */
      day: (text: string) => day.format(new Date(text)),
      exact: (value: number) => exact.format(value),
      short: (value: number) => short.format(value),
      bytes: (value: number) => formatBytes(value, language),
    };
  }, [language]);
}
