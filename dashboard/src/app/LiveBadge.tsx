import { useSyncExternalStore } from 'react';

import { live, type LiveState } from '../api/live';
import { StatusBadge, type Tone } from '../components/StatusBadge';
import { useText } from '../i18n/language';
import * as shell from '../i18n/shell';

const TONES: Record<LiveState, Tone> = { connecting: 'busy', live: 'ok', retrying: 'warn', polling: 'idle', stopped: 'idle' };

export function useLiveState(): LiveState {
  return useSyncExternalStore(live.watch, live.state);
}

export function LiveBadge() {
  const t = useText(shell);
  const state = useLiveState();
  return (
    <span title={t.liveMeaning[state]}>
      <StatusBadge tone={TONES[state]}>{t.live[state]}</StatusBadge>
    </span>
  );
}
