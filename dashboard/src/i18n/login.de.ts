import type { en } from './login.en';

export const de: typeof en = {
  title: 'Bei Roost anmelden',
  working: 'Anmeldung läuft ...',
  keyLabel: 'API-Schlüssel',
  keyHint: 'Der Schlüssel wird gegen eine Sitzung dieses Browsers getauscht und hier nicht gespeichert.',
  keyMissing: 'Gib einen API-Schlüssel ein.',
  signIn: 'Anmelden',
  how: 'Ohne Schlüssel: Das öffnet auf dem Rechner des Servers eine angemeldete Seite.',
  usedCode: 'Ein Anmeldelink gilt einmal und nur kurz. Erzeuge einen neuen oder nimm einen API-Schlüssel.',
};
