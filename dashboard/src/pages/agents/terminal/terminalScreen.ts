import '@xterm/xterm/css/xterm.css';

import { FitAddon } from '@xterm/addon-fit';
import { SearchAddon } from '@xterm/addon-search';
import { WebLinksAddon } from '@xterm/addon-web-links';
import { Terminal, type ITheme } from '@xterm/xterm';

import { isDark, watchDark } from '../../../app/theme';

const SCROLLBACK_LINES = 5_000;
const READABLE_CONTRAST = 4.5;
const LINK_LENGTH = 2_048;

const DARK: ITheme = {
  background: '#1b1e1d',
  foreground: '#e9eceb',
  cursor: '#5ccabd',
  cursorAccent: '#1b1e1d',
  selectionBackground: '#2f5d57',
  black: '#343a38',
  red: '#ff9c93',
  green: '#74d597',
  yellow: '#f0bd63',
  blue: '#8fb8ff',
  magenta: '#dba6f2',
  cyan: '#5ccabd',
  white: '#d5dad8',
  brightBlack: '#8d9793',
  brightRed: '#ffb9b3',
  brightGreen: '#9be7b5',
  brightYellow: '#f7d593',
  brightBlue: '#b5d0ff',
  brightMagenta: '#e8c6f8',
  brightCyan: '#8fe0d6',
  brightWhite: '#ffffff',
};
const LIGHT: ITheme = {
  background: '#ffffff',
  foreground: '#1a1d1c',
  cursor: '#0f6f68',
  cursorAccent: '#ffffff',
  selectionBackground: '#b9e0da',
  black: '#1a1d1c',
  red: '#b3261e',
  green: '#17693a',
  yellow: '#855300',
  blue: '#1f52a8',
  magenta: '#7b2d9b',
  cyan: '#0f6f68',
  white: '#59605c',
  brightBlack: '#59605c',
  brightRed: '#8f1d17',
  brightGreen: '#0f4f2b',
  brightYellow: '#633e00',
  brightBlue: '#163d7d',
  brightMagenta: '#5c2174',
  brightCyan: '#0b524d',
  brightWhite: '#1a1d1c',
};

/** Return an address that may be opened in another window: http or https, of a sane length. */
export function safeLink(text: string): string | null {
  if (text.length > LINK_LENGTH || !URL.canParse(text)) return null;
  const { protocol, href } = new URL(text);
  return protocol === 'http:' || protocol === 'https:' ? href : null;
}

/** Return a key that was typed while Ctrl is held: its control character. */
export function controlKey(text: string): string {
  const code = text.toUpperCase().charCodeAt(0);
  return text.length === 1 && code >= 0x40 && code <= 0x5f ? String.fromCharCode(code & 0x1f) : text;
}

export interface TerminalWidgets {
  readonly terminal: Terminal;
  readonly fit: FitAddon;
  readonly search: SearchAddon;
  dispose(): void;
}

/**
 * Create a terminal in an element. Its output is hostile: links are only offered, and what it cannot do is not there
 * (the clipboard, the window's title and size).
 */
export function createTerminal(element: HTMLElement, label: string, offerLink: (address: string) => void): TerminalWidgets {
  const activate = (_: MouseEvent, text: string) => {
    const address = safeLink(text);
    if (address !== null) offerLink(address);
  };
  const terminal = new Terminal({
    scrollback: SCROLLBACK_LINES,
    fontSize: 14,
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono').trim(),
    logLevel: 'off', // it would log what it cannot parse
    minimumContrastRatio: READABLE_CONTRAST,
    theme: isDark() ? DARK : LIGHT,
    linkHandler: { activate, allowNonHttpProtocols: false },
  });
  const fit = new FitAddon();
  const search = new SearchAddon();
  terminal.loadAddon(fit);
  terminal.loadAddon(search);
  terminal.loadAddon(new WebLinksAddon(activate));
  terminal.open(element);
  terminal.textarea?.setAttribute('aria-label', label);
  const unwatch = watchDark(() => (terminal.options.theme = isDark() ? DARK : LIGHT));
  return {
    terminal,
    fit,
    search,
    dispose() {
      unwatch();
      terminal.dispose();
    },
  };
}

const WHEEL_PIXELS = 18;

/** Scroll the kept output with a finger. Returns the function that ends it. */
export function scrollByTouch(terminal: Terminal, element: HTMLElement): () => void {
  let last: number | null = null;
  const ends = new AbortController();
  const listen = (type: 'touchstart' | 'touchmove', handle: (y: number) => void) =>
    element.addEventListener(type, (event) => handle(event.touches[0]!.clientY), { signal: ends.signal, passive: true });
  listen('touchstart', (y) => (last = y));
  listen('touchmove', (y) => {
    const lines = Math.trunc(((last ?? y) - y) / WHEEL_PIXELS);
    if (lines === 0) return;
    terminal.scrollLines(lines);
    last = (last ?? y) - lines * WHEEL_PIXELS;
  });
  return () => ends.abort();
}
