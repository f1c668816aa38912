/** The colour theme: the system's, or the one that the reader chose on this device. */
export type Theme = 'system' | 'light' | 'dark';

const STORAGE = 'roost.theme';

export function readTheme(): Theme {
  const stored = localStorage.getItem(STORAGE);
  return stored === 'light' || stored === 'dark' ? stored : 'system';
}

export function applyTheme(theme: Theme): void {
  localStorage.setItem(STORAGE, theme);
  if (theme === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}
