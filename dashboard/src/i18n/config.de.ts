import type { en } from './config.en';

export const de: typeof en = {
  title: 'Konfiguration',
  lead: 'Einstellungen der Engine des Agenten. Die der Plattform sind hier nicht änderbar; Secrets fehlen.',
  validate: 'Prüfen',
  validating: 'Wird geprüft ...',
  valid: 'Die Engine nimmt diese Konfiguration an.',
  invalid: 'Die Engine nimmt diese Konfiguration nicht an',
  marked: (count) => (count === 1 ? 'Die Stelle ist unten markiert.' : `${count} Stellen sind unten markiert.`),
  save: 'Sichern',
  saving: 'Wird gesichert ...',
  saved: 'Die Konfiguration wurde gesichert. Der Agent läuft damit.',
  discard: 'Änderungen verwerfen',
  unsaved: 'Nicht gesichert',
};
