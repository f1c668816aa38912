import type { en } from './drafts.en';

export const de: typeof en = {
  conflict: 'Inzwischen geändert',
  conflictText:
    'Dies wurde anderswo geändert, während du daran gearbeitet hast, siehe unten. Deine Änderungen sind noch nicht gesichert.',
  keepMine: 'Meine behalten',
  keepMineText: 'Sichern ersetzt dann, was hier gezeigt wird.',
  takeTheirs: 'Andere übernehmen',
  changes: 'Was sich inzwischen geändert hat',
  leaveTitle: 'Ohne Sichern verlassen?',
  leaveText: 'Deine Änderungen gehen dann verloren.',
  stay: 'Bleiben',
  leave: 'Ohne Sichern verlassen',
};
