import type { en } from './home.en';

export const de: typeof en = {
  title: 'Start',
  lead: (tenant) => `Was auf diesem Server für ${tenant} läuft`,
  startingText: 'Der Agent startet. Er antwortet, sobald er läuft.',
  downText: (name) => `${name} läuft nicht.`,
  see: 'Warum?',
  agents: 'Agenten',
  all: 'Alle Agenten',
  firstTitle: 'Lege deinen ersten Agenten an',
  firstText: 'Ein Agent ist ein Assistent, der in einem eigenen Container arbeitet, mit Dateien, Aufgaben und einer Adresse.',
  create: 'Agent anlegen',
  model: 'Modell',
  scripted:
    'Es ist kein Sprachmodell verbunden. Agenten nutzen einen Ersatz, der wiederholt, was du sagst; so lässt sich alles um ein Modell herum ausprobieren.',
  connect: 'Verbinde eines beim Start des Servers, zum Beispiel:',
  connectKey: 'Ein Agent kann auch einen eigenen Schlüssel nutzen: Gib ihm ein Secret wie ANTHROPIC_API_KEY oder OPENAI_API_KEY.',
  giveModel: (name) => `${name} ein Sprachmodell geben`,
  models: (count) => (count === 1 ? '1 Modell ist verbunden:' : `${count} Modelle sind verbunden:`),
};
