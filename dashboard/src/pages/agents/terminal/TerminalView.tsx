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
  const holdsControl = useRef(false);
  const [state, setState] = useState<TerminalState>({ kind: 'connecting' });
  const [link, setLink] = useState<string | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isSearching, setSearching] = useState(false);
  const [isControl, setControl] = useState(false);
  const [isReader, setReader] = useState(() => localStorage.getItem(READER) === 'on');

  const holdControl = (holds: boolean) => {
    holdsControl.current = holds;
    setControl(holds);
  };
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
    readInput: (data) => {
      if (!holdsControl.current) return data;
      holdControl(false);
      return controlKey(data);
    },
    shortcuts: {
      KeyC: (screen) => void copy(screen.getSelection()),
      KeyF: () => setSearching(true),
      KeyE: () => document.getElementById('content')?.focus(),
    },
  });
  useEffect(() => {
    if (!widgets) return;
    widgets.terminal.options.screenReaderMode = isReader;
    localStorage.setItem(READER, isReader ? 'on' : 'off');
  }, [widgets, isReader]);

  const screen = widgets?.terminal;
  const paste = () =>
    navigator.clipboard.readText().then(
      (text) => {
        screen?.paste(text);
        screen?.focus();
      },
      () => setProblem(t.pasteDenied),
    );
  const isOver = state.kind !== 'connecting' && state.kind !== 'open' && state.kind !== 'retrying';
  const actions = (
    <>
      <Button onPress={() => setSearching(!isSearching)}>
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
        {navigator.clipboard && <MenuItem onAction={() => void copy(screen?.getSelection() ?? '')}>{t.copy}</MenuItem>}
        {navigator.clipboard && <MenuItem onAction={() => void paste()}>{t.paste}</MenuItem>}
        <MenuItem onAction={() => screen?.clear()}>{t.clear}</MenuItem>
        <MenuItem onAction={() => setReader(!isReader)}>{isReader ? t.readerOn : t.readerOff}</MenuItem>
      </Menu>
    </>
  );
  const lead = (
    <span className={styles.status} role="status">
      <StatusBadge tone={TONES[state.kind]}>{t.states[state.kind]}</StatusBadge>
    </span>
  );
  return (
    <Page title={t.title} lead={lead} actions={actions} fills>
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
          <div className={styles.end}>
            <p role="status">{state.kind === 'exited' ? t.exited(state.code) : t.ends[state.kind]}</p>
            {state.kind !== 'signedOut' && (
              <Button kind="primary" onPress={onAgain}>
                <RotateCw size={17} aria-hidden /> {t.again}
              </Button>
            )}
          </div>
        )}
        {screen && !isOver && <PhoneKeys terminal={screen} isControl={isControl} onControl={holdControl} />}
        <p className={styles.hint}>{t.hint}</p>
      </div>
      <LinkDialog address={link} onClose={() => setLink(null)} />
    </Page>
  );
}
