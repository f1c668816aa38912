import type { SearchAddon } from '@xterm/addon-search';
import type { Terminal } from '@xterm/xterm';
import { ArrowDown, ArrowUp, X } from 'lucide-react';
import { useState, type KeyboardEvent } from 'react';

import { Button } from '../../../components/Button';
import { CodeBlock } from '../../../components/CodeBlock';
import { Dialog } from '../../../components/Dialog';
import { TextField } from '../../../components/Field';
import { useText } from '../../../i18n/language';
import * as terminal from '../../../i18n/terminal';
import styles from './terminal.module.css';

/** Search in the output: Enter goes up, as the newest output is at the bottom. */
export function SearchRow({ search, onClose }: { search: SearchAddon; onClose: () => void }) {
  const t = useText(terminal);
  const [text, setText] = useState('');
  const [isFound, setFound] = useState(true);
  const find = (term: string, isUp: boolean) => setFound(term === '' || (isUp ? search.findPrevious(term) : search.findNext(term)));
  const press = (event: KeyboardEvent) => {
    if (event.key === 'Escape') onClose();
    if (event.key === 'Enter') find(text, !event.shiftKey);
  };
  return (
    <div className={styles.search} role="search">
      <TextField
        label={t.searchFor}
        type="search"
        value={text}
        autoComplete="off"
        autoFocus
        onChange={(term) => {
          setText(term);
          find(term, true);
        }}
        onKeyDown={press}
      />
      <Button iconOnly aria-label={t.previous} onPress={() => find(text, true)}>
        <ArrowUp size={17} aria-hidden />
      </Button>
      <Button iconOnly aria-label={t.next} onPress={() => find(text, false)}>
        <ArrowDown size={17} aria-hidden />
      </Button>
      <Button iconOnly kind="quiet" aria-label={t.closeSearch} onPress={onClose}>
        <X size={17} aria-hidden />
      </Button>
      <p role="status">{!isFound && t.noMatch}</p>
    </div>
  );
}

interface KeysProps {
  terminal: Terminal;
  isControl: boolean;
  onControl: (holds: boolean) => void;
}

/** Keys that phones lack. They leave the focus in the terminal, so that its keyboard stays open. */
export function PhoneKeys({ terminal: screen, isControl, onControl }: KeysProps) {
  const t = useText(terminal);
  const type = (keys: string) => screen.input(keys);
  const arrow = (letter: string) => type(`\x1b${screen.modes.applicationCursorKeysMode ? 'O' : '['}${letter}`);
  const keys: readonly (readonly [text: string, label: string, press: () => void])[] = [
    ['Esc', 'Esc', () => type('\x1b')],
    ['Tab', 'Tab', () => type('\t')],
    ['←', t.key.left, () => arrow('D')],
    ['↑', t.key.up, () => arrow('A')],
    ['↓', t.key.down, () => arrow('B')],
    ['→', t.key.right, () => arrow('C')],
  ];
  return (
    <div className={styles.keys} role="toolbar" aria-label={t.keys} onPointerDown={(event) => event.preventDefault()}>
      <button
        type="button"
        className={styles.key}
        aria-label={t.key.control}
        aria-pressed={isControl}
        onClick={() => onControl(!isControl)}
      >
        Ctrl
      </button>
      {keys.map(([text, label, press]) => (
        <button key={label} type="button" className={styles.key} aria-label={label} onClick={press}>
          {text}
        </button>
      ))}
    </div>
  );
}

/** Asks before a link of the output is opened, and shows where it leads. */
export function LinkDialog({ address, onClose }: { address: string | null; onClose: () => void }) {
  const t = useText(terminal);
  const open = () => {
    window.open(address!, '_blank', 'noopener,noreferrer');
    onClose();
  };
  const actions = (
    <>
      <Button onPress={onClose}>{t.cancel}</Button>
      <Button kind="primary" onPress={open}>
        {t.linkOpen}
      </Button>
    </>
  );
  return (
    <Dialog title={t.linkTitle} isOpen={address !== null} onClose={onClose} actions={actions}>
      <p>{t.linkText}</p>
      <CodeBlock code={address ?? ''} label={t.linkTitle} />
    </Dialog>
  );
}
