import type { AgentState } from '../../api/agents';
import { StatusBadge, type Tone } from '../../components/StatusBadge';
import * as agents from '../../i18n/agents';
import { useText } from '../../i18n/language';

const TONES: Record<AgentState, Tone> = { running: 'ok', starting: 'busy', not_running: 'idle', failed: 'danger' };

export function AgentStatus({ state }: { state: AgentState }) {
  const t = useText(agents);
  return <StatusBadge tone={TONES[state]}>{t.states[state]}</StatusBadge>;
}
