import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';

import { channelsQuery, configureChannel, removeChannel, type Channel } from '../../api/agentData';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { ErrorPanel } from '../../components/ErrorPanel';
import { TextField } from '../../components/Field';
import { ControlledFormDialog } from '../../components/ControlledFormDialog';
import { Item, ItemList } from '../../components/ItemList';
import { Loaded } from '../../components/Loaded';
import { Page } from '../../components/Page';
import { Select } from '../../components/Select';
import { StatusBadge } from '../../components/StatusBadge';
import { showToast } from '../../components/Toast';
import * as channels from '../../i18n/channels';
import { useText } from '../../i18n/language';

const route = getRouteApi('/shell/agents/$id/channels');
const NAMES = ['telegram', 'slack', 'discord'] as const;
type Name = (typeof NAMES)[number];

export function AgentChannelsPage() {
  const { id } = route.useParams();
  const t = useText(channels);
  const query = useQuery(channelsQuery(id));
  return (
    <Page title={t.title} lead={t.lead}>
      <Loaded query={query}>
        {(found) => (
          <ItemList label={t.title}>
            {NAMES.map((name) => (
              <ChannelItem key={name} agentId={id} name={name} channel={found[name]} />
            ))}
          </ItemList>
        )}
      </Loaded>
    </Page>
  );
}

interface Props {
  agentId: string;
  name: Name;
  channel: Channel | null;
}

function ChannelItem({ agentId, name, channel }: Props) {
  const t = useText(channels);
  const may = useMay();
  const [open, setOpen] = useState<'form' | 'remove' | null>(null);
  const [warning, setWarning] = useState<string | null>(null);
  const close = () => setOpen(null);
  const title = t.names[name];
  const remove = useMutation({
    mutationFn: () => removeChannel(agentId, name),
    onSuccess: () => {
      setWarning(null);
      showToast(t.removed(title));
    },
  });
  const facts = channel && (
    <>
      {channel.botUsername && <span>{t.bot(channel.botUsername)}</span>}
      {channel.botTokenHint && <span>{t.token(channel.botTokenHint)}</span>}
      <span>{t.policies[channel.dmPolicy]}</span>
    </>
  );
  const actions = may('editor') && (
    <>
      <Button onPress={() => setOpen('form')}>{channel ? t.change : t.setUp}</Button>
      {channel && <Button onPress={() => setOpen('remove')}>{t.remove}</Button>}
    </>
  );
  return (
    <Item title={title} badge={<ChannelBadge channel={channel} />} facts={facts} actions={actions}>
      {channel?.lastError && <ErrorPanel error={new Error(channel.lastError)} />}
      {warning !== null && <p role="status">{warning}</p>}
      {open === 'form' && (
        <ChannelForm agentId={agentId} name={name} channel={channel} onWarning={setWarning} onClose={close} />
      )}
      <ConfirmDialog
        title={t.removeTitle(title)}
        action={t.remove}
        isOpen={open === 'remove'}
        onClose={close}
        onConfirm={() => remove.mutateAsync()}
      >
        <p>{t.removeText}</p>
      </ConfirmDialog>
    </Item>
  );
}

function ChannelBadge({ channel }: { channel: Channel | null }) {
  const t = useText(channels);
  if (!channel) return <StatusBadge tone="idle">{t.notSetUp}</StatusBadge>;
  if (!channel.enabled) return <StatusBadge tone="idle">{t.disabled}</StatusBadge>;
  if (channel.lastError) return <StatusBadge tone="danger">{t.failed}</StatusBadge>;
  if (channel.connected) return <StatusBadge tone="ok">{t.connected}</StatusBadge>;
  return <StatusBadge tone="warn">{t.waiting}</StatusBadge>;
}

interface FormProps extends Props {
  onWarning: (warning: string | null) => void;
  onClose: () => void;
}

function ChannelForm({ agentId, name, channel, onWarning, onClose }: FormProps) {
  const t = useText(channels);
  const [botToken, setBotToken] = useState('');
  const [appToken, setAppToken] = useState('');
  const [policy, setPolicy] = useState<'pairing' | 'open'>(channel?.dmPolicy ?? 'pairing');
  const title = t.names[name];
  const save = useMutation({
    mutationFn: () =>
      configureChannel(agentId, name, {
        dmPolicy: policy,
        ...(policy === 'open' && { allowFrom: [] }), // an empty list admits everyone
        ...(botToken.trim() && { botToken: botToken.trim() }),
        ...(appToken.trim() && { appToken: appToken.trim() }),
      }),
    onSuccess: ({ warning }) => {
      onWarning(warning ?? null);
      showToast(t.saved(title));
      onClose();
    },
  });
  const hint = channel ? t.keep : undefined;
  return (
    <ControlledFormDialog
      title={t.setUpTitle(title)}
      action={channel ? t.change : t.setUp}
      isOpen
      onClose={onClose}
      onSubmit={() => save.mutate()}
      isPending={save.isPending}
      isDisabled={!channel && !botToken.trim()}
      error={save.error}
    >
      <ol>
        {t.steps[name].map((step) => (
          <li key={step}>{step}</li>
        ))}
      </ol>
      <TextField label={t.botToken} hint={hint} type="password" value={botToken} onChange={setBotToken} autoComplete="off" />
      {name === 'slack' && (
        <TextField label={t.appToken} hint={hint} type="password" value={appToken} onChange={setAppToken} autoComplete="off" />
      )}
      <Select
        label={t.policy}
        value={policy}
        onChange={setPolicy}
        choices={(['pairing', 'open'] as const).map((one) => ({ id: one, label: t.policies[one] }))}
      />
    </ControlledFormDialog>
  );
}
