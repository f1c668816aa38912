import { useEffect, useState } from 'react';

import { useLanguage } from '../i18n/language';

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];
const REFRESH_MS = 30_000;

/** Return a time relative to now in words: "3 hours ago". */
export function relativeTime(at: Date, now: Date, language: string): string {
  const seconds = (at.getTime() - now.getTime()) / 1000;
  const [unit, size] = UNITS.find(([, length]) => Math.abs(seconds) >= length) ?? ['second', 1];
  return new Intl.RelativeTimeFormat(language, { numeric: 'auto' }).format(Math.trunc(seconds / size), unit);
}

/** A time relative to now; the exact one is its title. */
export function Timestamp({ at }: { at: string }) {
  const { language } = useLanguage();
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    const timer = setInterval(() => setNow(new Date()), REFRESH_MS);
    return () => clearInterval(timer);
  }, []);
  const moment = new Date(at);
  if (Number.isNaN(moment.getTime())) return <>{at}</>;
  const exact = new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium' }).format(moment);
  return (
    <time dateTime={at} title={exact}>
      {relativeTime(moment, now > moment ? now : new Date(), language)}
    </time>
  );
}
