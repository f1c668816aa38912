import type { en } from './common.en';

export const de: typeof en = {
  cancel: 'Abbrechen',
  close: 'Schließen',
  code: 'Code',
  copied: 'Kopiert',
  copy: 'Kopieren',
  loading: 'Wird geladen',
  more: 'Mehr laden',
  noAnswer: 'Der Server antwortet nicht. Prüfe, ob er läuft und ob dieses Gerät online ist.',
  noAgent: 'Kein solcher Agent',
  noAgentText: (id) =>
    `Einen Agenten mit der Kennung ${id} gibt es hier nicht: Er wurde gelöscht, oder er gehört jemand anderem.`,
  notFound: 'Diese Seite gibt es nicht.',
  toAgents: 'Zu den Agenten',
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
