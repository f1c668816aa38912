import type { en } from './chat.en';

export const de: typeof en = {
  title: (name) => `Chat mit ${name}`,
  message: 'Nachricht',
  placeholder: 'Schreibe eine Nachricht. Enter sendet, Umschalt+Enter beginnt eine Zeile.',
  send: 'Senden',
  stop: 'Anhalten',
  stopped: 'Angehalten.',
  you: 'Du',
  empty: 'Noch wurde nichts gesagt.',
  emptyText:
    'Das Gespräch gehört zu diesem Tab: Es geht weiter, während du andere Seiten ansiehst, und endet, wenn du ihn schließt.',
  latest: 'Zur neuesten Nachricht',
  notRunning: 'Der Agent läuft nicht und kann deshalb nicht antworten.',
  toOverview: 'Warum?',
  clear: 'Neues Gespräch',
  image: (alt) => `Bild: ${alt || 'ohne Beschreibung'}`,
  emptyAnswer: 'Die Antwort war leer. Das Protokoll des Agenten zeigt vielleicht, warum.',
  malformed: 'Die Antwort des Agenten ist kein Strom von Chat-Antworten.',
  thinking: 'Der Agent antwortet',
  copy: 'Text kopieren',
  retry: 'Noch einmal fragen',
  toolUses: 'Benutzte Werkzeuge',
  toolDone: 'fertig',
  toolRuns: 'läuft',
  toolStopped: 'angehalten',
};
