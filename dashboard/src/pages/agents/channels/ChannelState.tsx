import { focusManager, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useSyncExternalStore } from 'react';

import { channelsQuery, configureChannel } from '../../../api/agentData';
import { agentQuery, enginesQuery } from '../../../api/agents';
import { CHANNELS, followChannels, isUnchecked, type Channel, type ChannelAbility, type ChannelName } from '../../../api/channels';
import { useMay } from '../../../app/useSession';
import { Button } from '../../../components/Button';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { Row } from '../../../components/Row';
import { StatusBadge } from '../../../components/StatusBadge';
import { Timestamp } from '../../../components/Timestamp';
import * as channels from '../../../i18n/channels';
import { useText } from '../../../i18n/language';

/** What the engine of an agent can do on a channel; nothing until that is known. */
export function useChannelAbility(agentId: string, name: ChannelName): ChannelAbility {
  const engine = useQuery(agentQuery(agentId)).data?.agent.engine;
  const found = useQuery(enginesQuery).data?.engines.find(({ id }) => id === engine);
  return found?.channels[name] ?? { pairingCodes: false, reportsMessages: false };
}

/** The channels of an agent. While one is set up and the page is seen, the server tells of states and messages. */
export function useLiveChannels(agentId: string) {
  const queries = useQueryClient();
  const query = useQuery(channelsQuery(agentId));
  const isSeen = useSyncExternalStore(
    (notify) => focusManager.subscribe(notify),
    () => focusManager.isFocused(),
  );
  const isFollowed = isSeen && CHANNELS.some((name) => query.data?.[name]?.enabled);
  useEffect(() => {
    if (!isFollowed) return;
    const abort = new AbortController();
    const { queryKey } = channelsQuery(agentId);
    void followChannels(agentId, (list) => queries.setQueryData(queryKey, list), abort.signal);
    return () => abort.abort();
  }, [agentId, isFollowed, queries]);
  return query;
}

export function ChannelBadge({ channel }: { channel: (Channel & { linked?: boolean | null }) | null }) {
  const t = useText(channels);
  if (!channel) return <StatusBadge tone="idle">{t.notSetUp}</StatusBadge>;
  if (!channel.enabled) return <StatusBadge tone="idle">{t.disabled}</StatusBadge>;
  if (channel.linked === false) return <StatusBadge tone="warn">{t.unlinked}</StatusBadge>;
  if (channel.connected) return <StatusBadge tone="ok">{t.connected}</StatusBadge>;
  if (channel.lastError) return <StatusBadge tone="danger">{t.failed}</StatusBadge>;
  if (isUnchecked(channel)) return <StatusBadge tone="warn">{t.unchecked}</StatusBadge>;
  if (channel.running === null) return <StatusBadge tone="idle">{t.stopped}</StatusBadge>;
  return <StatusBadge tone="busy">{t.waiting}</StatusBadge>;
}

/** Why a channel failed, and what was not checked, why, and a button that checks it again. */
export function ChannelProblems({ agentId, name, channel }: { agentId: string; name: ChannelName; channel: Channel }) {
  const t = useText(channels);
  const may = useMay();
  const check = useMutation({ mutationFn: () => configureChannel(agentId, name, {}) });
  return (
    <>
      {channel.lastError && <ErrorPanel error={new Error(channel.lastError)} />}
      {channel.enabled && isUnchecked(channel) && (
        <Row>
          <span role="status">{!check.error && (channel.unchecked ?? t.uncheckedText(t.names[name]))}</span>
          {channel.uncheckedAt && <Timestamp at={channel.uncheckedAt} />}
          {may('editor') && (
            <Button onPress={() => check.mutate()} isDisabled={check.isPending}>
              {check.isPending ? t.checking : t.checkAgain}
            </Button>
          )}
        </Row>
      )}
      {check.error && <ErrorPanel error={check.error} />}
    </>
  );
}
