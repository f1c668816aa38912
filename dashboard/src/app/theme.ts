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

const SYSTEM_DARK = '(prefers-color-scheme: dark)';

/** Return whether the page is dark now, for what is drawn without style sheets. */
export function isDark(): boolean {
  const { theme } = document.documentElement.dataset;
  return theme === undefined ? matchMedia(SYSTEM_DARK).matches : theme === 'dark';
}

/** Call `changed` when the page may have become dark or light. Returns the function that ends it. */
export function watchDark(changed: () => void): () => void {
  const observer = new MutationObserver(changed);
  observer.observe(document.documentElement, { attributeFilter: ['data-theme'] });
  const system = matchMedia(SYSTEM_DARK);
  system.addEventListener('change', changed);
  return () => {
    observer.disconnect();
    system.removeEventListener('change', changed);
  };
}
