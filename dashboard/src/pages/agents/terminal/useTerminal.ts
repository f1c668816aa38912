import type { Terminal } from '@xterm/xterm';
import { type RefObject, useEffect, useEffectEvent, useState } from 'react';

import { TerminalConnection, type TerminalState } from '../../../api/terminal';
import { useText } from '../../../i18n/language';
import * as terminal from '../../../i18n/terminal';
import { createTerminal, scrollByTouch, type TerminalWidgets } from './terminalScreen';

interface Options {
  onLink: (address: string) => void;
  /** Called with null when input is sent again. */
  onProblem: (problem: string | null) => void;
  onState: (state: TerminalState) => void;
  /** Return what to send for what was typed. */
  readInput: (data: string) => string;
  /** Actions of Ctrl+Shift by the key's code. */
  shortcuts: Readonly<Record<string, (screen: Terminal) => void>>;
}

/** Open a terminal in an element and connect it to the agent. Returns null until it is open. */
export function useTerminal(agentId: string, host: RefObject<HTMLElement | null>, options: Options): TerminalWidgets | null {
  const t = useText(terminal);
  const [widgets, setWidgets] = useState<TerminalWidgets | null>(null);
  const latest = useEffectEvent(() => ({ ...options, t }));
  useEffect(() => {
    const element = host.current!;
    const made = createTerminal(element, latest().t.input, (address) => latest().onLink(address));
    const { terminal: screen, fit } = made;
    fit.fit();
    const connection = new TerminalConnection(agentId, screen, {
      write: (data, done) => screen.write(data, done),
      skip: (bytes) => screen.write(`\r\n\x1b[7m ${latest().t.missing(bytes)} \x1b[0m\r\n`),
    });
    const send = (data: Uint8Array<ArrayBuffer>) => latest().onProblem(connection.send(data) ? null : latest().t.inputFull);
    const encoder = new TextEncoder();
    screen.onData((data) => send(encoder.encode(latest().readInput(data))));
    screen.onBinary((data) => send(Uint8Array.from(data, (character) => character.charCodeAt(0))));
    screen.onResize((size) => connection.resize(size));
    screen.attachCustomKeyEventHandler((event) => {
      if (event.type !== 'keydown' || !event.ctrlKey || !event.shiftKey) return true;
      const action = latest().shortcuts[event.code];
      if (action === undefined) return event.code !== 'KeyV'; // the browser itself pastes
      event.preventDefault();
      action(screen);
      return false;
    });
    const endWatch = connection.watch(() => latest().onState(connection.state()));
    const endTouch = scrollByTouch(screen, element);
    const observer = new ResizeObserver(() => fit.fit());
    observer.observe(element);
    setWidgets(made);
    screen.focus();
    return () => {
      observer.disconnect();
      endTouch();
      endWatch();
      connection.close();
      made.dispose();
    };
  }, [agentId, host]);
  return widgets;
}
