import type { Terminal } from '@xterm/xterm';
import { EllipsisVertical, RotateCw, Search } from 'lucide-react';
import { useEffect, useRef, useState } from 'react';

import type { TerminalState } from '../../../api/terminal';
import { Button } from '../../../components/Button';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { Menu, MenuItem } from '../../../components/Menu';
import { Page } from '../../../components/Page';
import { StatusBadge, type Tone } from '../../../components/StatusBadge';
import { showToast } from '../../../components/Toast';
import { useText } from '../../../i18n/language';
import * as terminal from '../../../i18n/terminal';
import { LinkDialog, PhoneKeys, SearchRow } from './TerminalControls';
import styles from './terminal.module.css';
import { controlKey } from './terminalScreen';
import { useTerminal } from './useTerminal';

const TONES: Record<TerminalState['kind'], Tone> = {
  connecting: 'busy',
  open: 'ok',
  retrying: 'warn',
  exited: 'idle',
  taken: 'warn',
  gone: 'idle',
  lost: 'danger',
  refused: 'danger',
  signedOut: 'danger',
};
const READER = 'roost.terminal.reader';

interface Props {
  agentId: string;
  onState: (state: TerminalState['kind']) => void;
  onAgain: () => void;
}

/** A terminal and its controls, for one session. */
export function TerminalView({ agentId, onState, onAgain }: Props) {
  const t = useText(terminal);
  const host = useRef<HTMLDivElement>(null);
  const [state, setState] = useState<TerminalState>({ kind: 'connecting' });
  const [link, setLink] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isSearching, setSearching] = useState(false);
  const control = useControlKey();

  const copy = async (selection: string) => {
    if (selection === '') return;
    await navigator.clipboard.writeText(selection);
    showToast(t.copied);
  };
  const widgets = useTerminal(agentId, host, {
    onLink: setLink,
    onProblem: setProblem,
    onState: (next) => {
      setState(next);
      onState(next.kind);
    },
    readInput: control.read,
    shortcuts: {
      KeyC: (screen) => void copy(screen.getSelection()),
      KeyF: () => setSearching(true),
      KeyE: () => document.getElementById('content')?.focus(),
    },
  });
  const screen = widgets?.terminal;
  const isOver = state.kind !== 'connecting' && state.kind !== 'open' && state.kind !== 'retrying';
  const actions = <Actions terminal={screen} onSearch={() => setSearching(!isSearching)} onCopy={copy} onProblem={setProblem} />;
  return (
    <Page title={t.title} lead={<StateBadge state={state.kind} />} actions={actions} fills>
      <div className={styles.layout}>
        {problem !== null && <ErrorPanel error={new Error(problem)} />}
        <div className={styles.frame}>
          <div ref={host} className={styles.host} />
          {isSearching && widgets && (
            <SearchRow
              search={widgets.search}
              onClose={() => {
                setSearching(false);
                widgets.terminal.focus();
              }}
            />
          )}
        </div>
        {isOver && (
          <EndedNote
            text={state.kind === 'exited' ? t.exited(state.code) : t.ends[state.kind]}
            onAgain={state.kind === 'signedOut' ? null : onAgain}
          />
        )}
        {screen && !isOver && <PhoneKeys terminal={screen} isControl={control.isHeld} onControl={control.hold} />}
        <p className={styles.hint}>{t.hint}</p>
      </div>
      <LinkDialog address={link} onClose={() => setLink(null)} />
    </Page>
  );
}

interface ActionsProps {
  terminal: Terminal | undefined;
  onSearch: () => void;
  onCopy: (selection: string) => Promise<void>;
  onProblem: (problem: string) => void;
}

function StateBadge({ state }: { state: TerminalState['kind'] }) {
  const t = useText(terminal);
  return (
    <span className={styles.status} role="status">
      <StatusBadge tone={TONES[state]}>{t.states[state]}</StatusBadge>
    </span>
  );
}

/** A Ctrl key for phones: held until the next key is typed. */
function useControlKey() {
  const held = useRef(false); // the terminal reads it before the page is drawn again
  const [isHeld, setHeld] = useState(false);
  const hold = (holds: boolean) => {
    held.current = holds;
    setHeld(holds);
  };
  const read = (typed: string) => {
    if (!held.current) return typed;
    hold(false);
    return controlKey(typed);
  };
  return { isHeld, hold, read };
}

function useReaderMode(screen: Terminal | undefined) {
  const [isReader, setReader] = useState(() => localStorage.getItem(READER) === 'on');
  useEffect(() => {
    if (!screen) return;
    screen.options.screenReaderMode = isReader;
    localStorage.setItem(READER, isReader ? 'on' : 'off');
  }, [screen, isReader]);
  return { isReader, toggle: () => setReader(!isReader) };
}

function Actions({ terminal: screen, onSearch, onCopy, onProblem }: ActionsProps) {
  const t = useText(terminal);
  const { isReader, toggle } = useReaderMode(screen);
  const paste = () =>
    navigator.clipboard.readText().then(
      (text) => {
        screen?.paste(text);
        screen?.focus();
      },
      () => onProblem(t.pasteDenied),
    );
  return (
    <>
      <Button onPress={onSearch}>
        <Search size={17} aria-hidden /> {t.search}
      </Button>
      <Menu
        label={t.more}
        trigger={
          <Button iconOnly aria-label={t.more}>
            <EllipsisVertical size={18} aria-hidden />
          </Button>
        }
      >
        {navigator.clipboard && <MenuItem onAction={() => void onCopy(screen?.getSelection() ?? '')}>{t.copy}</MenuItem>}
        {navigator.clipboard && <MenuItem onAction={() => void paste()}>{t.paste}</MenuItem>}
        <MenuItem onAction={() => screen?.clear()}>{t.clear}</MenuItem>
        <MenuItem onAction={toggle}>{isReader ? t.readerOn : t.readerOff}</MenuItem>
      </Menu>
    </>
  );
}

function EndedNote({ text, onAgain }: { text: string; onAgain: (() => void) | null }) {
  const t = useText(terminal);
  return (
    <div className={styles.end}>
      <p role="status">{text}</p>
      {onAgain && (
        <Button kind="primary" onPress={onAgain}>
          <RotateCw size={17} aria-hidden /> {t.again}
        </Button>
      )}
    </div>
  );
}
