export const en = {
  conflict: 'Changed meanwhile',
  conflictText: 'This was changed elsewhere while you edited it, as shown below. Your changes are not saved yet.',
  keepMine: 'Keep mine',
  keepMineText: 'Saving then replaces what is shown here.',
  takeTheirs: 'Take theirs',
  changes: 'What changed meanwhile',
  leaveTitle: 'Leave without saving?',
  leaveText: 'Your changes are lost then.',
  stay: 'Stay',
  leave: 'Leave without saving',
};
