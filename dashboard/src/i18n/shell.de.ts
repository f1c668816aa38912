import type { en } from './shell.en';

export const de: typeof en = {
  account: 'Konto und Einstellungen',
  agentPages: 'Seiten des Agenten',
  collapse: 'Navigation schmal',
  commands: 'Seiten und Agenten suchen',
  expand: 'Navigation breit',
  language: 'Sprache',
  live: {
    connecting: 'Verbinden',
    live: 'Live',
    retrying: 'Neu verbinden',
    polling: 'Alle 5 s',
    stopped: 'Nicht live',
  },
  liveMeaning: {
    connecting: 'Die Verbindung für Änderungen wird aufgebaut.',
    live: 'Änderungen erscheinen sofort.',
    retrying: 'Die Verbindung zum Server ist abgebrochen und wird neu aufgebaut.',
    polling: 'Dieser Server meldet keine Änderungen; die Seiten laden alle 5 Sekunden neu.',
    stopped: 'Änderungen erscheinen, wenn die Seite neu geladen wird.',
  },
  more: 'Mehr',
  navigation: 'Hauptnavigation',
  noMatch: 'Nichts gefunden.',
  pages: {
    home: 'Start',
    agents: 'Agenten',
    overview: 'Übersicht',
    chat: 'Chat',
    newAgent: 'Neuer Agent',
  },
  roles: { owner: 'Inhaber', editor: 'Bearbeiter', viewer: 'Leser' },
  searchHint: 'Eine Seite, ein Agent oder eine Aktion',
  signOut: 'Abmelden',
  skip: 'Zum Inhalt',
  theme: { system: 'Farben: System', light: 'Farben: hell', dark: 'Farben: dunkel' },
};
