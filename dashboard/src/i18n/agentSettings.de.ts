import type { en } from './agentSettings.en';

export const de: typeof en = {
  title: 'Einstellungen',
  lead: 'Wie der Agent heißt, wozu er da ist und welches Modell er bevorzugt.',
  name: 'Name',
  nameMissing: 'Gib einen Namen ein.',
  description: 'Beschreibung',
  descriptionHint: 'Wozu er da ist. Auch der Agent sieht sie.',
  vibe: 'Art',
  vibeHint: 'Wie er klingen soll, etwa „kurz und trocken“.',
  emoji: 'Emoji',
  model: 'Modell',
  modelHint: 'Ein anderes Modell startet den Agenten neu.',
  firstModel: 'Das erste Modell des Servers',
  save: 'Speichern',
  saving: 'Wird gespeichert ...',
  saved: 'Die Einstellungen wurden gespeichert.',
};
