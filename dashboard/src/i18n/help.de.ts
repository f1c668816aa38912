import type { en } from './help.en';

export const de: typeof en = { docs: 'Dokumentation (englisch)', ofPage: 'Hilfe zu dieser Seite (englisch)' };
