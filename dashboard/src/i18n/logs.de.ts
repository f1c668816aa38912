import type { en } from './logs.en';

export const de: typeof en = {
  title: 'Protokoll',
  level: 'Stufe',
  levels: {
    TRACE: 'Alle',
    DEBUG: 'Ab Debug',
    INFO: 'Ab Info',
    WARN: 'Warnungen und Fehler',
    ERROR: 'Fehler',
    FATAL: 'Fatale Fehler',
  },
  search: 'Suchen',
  pause: 'Anhalten',
  resume: 'Fortsetzen',
  paused: (count) => (count === 0 ? 'Angehalten.' : `Angehalten. ${count} neue Zeilen.`),
  save: 'Als Datei sichern',
  clear: 'Leeren',
  latest: 'Zur neuesten Zeile',
  states: { connecting: 'Verbinden', live: 'Live', retrying: 'Neu verbinden', failed: 'Nicht verbunden' },
  count: (shown, all) => (shown === all ? `${all} Zeilen` : `${shown} von ${all} Zeilen`),
  empty: 'Noch keine Zeilen. Sie erscheinen, sobald der Agent etwas schreibt.',
  noMatch: 'Keine Zeile passt.',
};
