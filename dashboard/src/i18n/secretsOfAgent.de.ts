import type { en } from './secretsOfAgent.en';

export const de: typeof en = {
  title: 'Secrets',
  lead: 'Umgebungsvariablen des Agenten, etwa Schlüssel von Diensten. Ihre Werte kann hier niemand lesen.',
  create: 'Neues Secret',
  name: 'Name',
  nameHint: 'Der Umgebungsvariablen, zum Beispiel OPENAI_API_KEY.',
  value: 'Wert',
  attachedNew: (name) => `${name} wurde gespeichert und zugeordnet.`,
  attach: 'Gespeichertes zuordnen',
  attachAction: 'Zuordnen',
  attached: (name) => `${name} wurde zugeordnet.`,
  none: 'Alle gespeicherten Secrets sind schon zugeordnet.',
  secret: 'Secret',
  emptyTitle: 'Noch keine Secrets',
  emptyText: 'Ein zugeordnetes Secret ist eine Umgebungsvariable des Agenten und dessen, was er ausführt.',
  waiting: 'Erreicht den Agenten beim nächsten Neustart',
  detach: 'Lösen',
  detachTitle: (name) => `${name} lösen`,
  detachText: 'Der Agent bekommt das Secret nicht mehr. Für andere Agenten bleibt es gespeichert.',
  detached: (name) => `${name} wurde gelöst.`,
};
