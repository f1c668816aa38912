import { useMemo } from 'react';

import { formatBytes } from '../../components/bytes';
import { useLanguage } from '../../i18n/language';

/** Numbers in the reader's language: exact, short for axes, and bytes. */
export function useNumbers() {
  const { language } = useLanguage();
  return useMemo(() => {
    const exact = new Intl.NumberFormat(language);
    const short = new Intl.NumberFormat(language, { notation: 'compact', maximumFractionDigits: 1 });
    return {
      exact: (value: number) => exact.format(value),
      short: (value: number) => short.format(value),
      bytes: (value: number) => formatBytes(value, language),
    };
  }, [language]);
}
