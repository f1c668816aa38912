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
  againTitle: 'Neu anmelden?',
  againText: (tenant, role) =>
    `Dieser Browser ist für ${tenant} als ${{ owner: 'Inhaber', editor: 'Bearbeiter', viewer: 'Leser' }[role]} angemeldet. ` +
    'Der geöffnete Link würde diese Sitzung ersetzen.',
  againHint: 'Nimm den Link nur, wenn du ihn erzeugt oder erwartet hast.',
  keep: 'Angemeldet bleiben',
  useLink: 'Den Link nehmen',
};
