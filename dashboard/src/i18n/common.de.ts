import type { en } from './common.en';

export const de: typeof en = {
  cancel: 'Abbrechen',
  close: 'Schließen',
  code: 'Code',
  copied: 'Kopiert',
  copy: 'Kopieren',
  loading: 'Wird geladen',
  noAnswer: 'Der Server antwortet nicht. Prüfe, ob er läuft und ob dieses Gerät online ist.',
  notFound: 'Diese Seite gibt es nicht.',
  reload: 'Neu laden',
  requestId: 'Anfrage',
  retry: 'Erneut versuchen',
  retryAfter: (seconds) => `Erneut versuchen in ${seconds} s.`,
  slow: 'Das dauert länger als sonst.',
  toStart: 'Zur Startseite',
  typeToConfirm: (text) => `Gib zur Bestätigung „${text}“ ein`,
  unknownError: 'Auf dieser Seite ist etwas fehlgeschlagen.',
  working: 'Läuft ...',
  undo: 'Rückgängig',
  undone: 'Es ist wiederhergestellt.',
  notUndone: (reason) => `Es konnte nicht wiederhergestellt werden. ${reason}`,
};
