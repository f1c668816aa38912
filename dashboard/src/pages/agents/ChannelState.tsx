import { channelsQuery } from '../../api/agentData';
import { isConnecting, type Channel } from '../../api/channels';
import { StatusBadge } from '../../components/StatusBadge';
import * as channels from '../../i18n/channels';
import { useText } from '../../i18n/language';

const POLL_MS = 2_000;

/** The channels of an agent, asked again while one connects: the platforms send no events about that. */
export const liveChannelsQuery = (agentId: string) => ({
  ...channelsQuery(agentId),
  refetchInterval: ({ state }: { state: { data?: object } }) =>
    Object.values(state.data ?? {}).some(isConnecting) ? POLL_MS : false,
});

export function ChannelBadge({ channel }: { channel: (Channel & { linked?: boolean | null }) | null }) {
  const t = useText(channels);
  if (!channel) return <StatusBadge tone="idle">{t.notSetUp}</StatusBadge>;
  if (!channel.enabled) return <StatusBadge tone="idle">{t.disabled}</StatusBadge>;
  if (channel.linked === false) return <StatusBadge tone="warn">{t.unlinked}</StatusBadge>;
  if (channel.connected) return <StatusBadge tone="ok">{t.connected}</StatusBadge>;
  if (channel.lastError) return <StatusBadge tone="danger">{t.failed}</StatusBadge>;
  if (channel.running === null) return <StatusBadge tone="idle">{t.stopped}</StatusBadge>;
  return <StatusBadge tone="busy">{t.waiting}</StatusBadge>;
}
