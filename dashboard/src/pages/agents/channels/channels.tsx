import { useMutation } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { useState } from 'react';

import { configureChannel, removeChannel } from '../../../api/agentData';
import {
  CHANNELS,
  channelDraft,
  isComplete,
  isUnchecked,
  toConfiguration,
  type Channel,
  type ChannelName,
} from '../../../api/channels';
import { useMay } from '../../../app/useSession';
import { Button } from '../../../components/Button';
import { ConfirmButton } from '../../../components/ConfirmButton';
import { ConfirmDialog } from '../../../components/ConfirmDialog';
import { Dialog } from '../../../components/Dialog';
import { FormDialog } from '../../../components/FormDialog';
import { Item, ItemList } from '../../../components/ItemList';
import { Loaded } from '../../../components/Loaded';
import { Page } from '../../../components/Page';
import { showToast } from '../../../components/Toast';
import * as channels from '../../../i18n/channels';
import { useText } from '../../../i18n/language';
import * as reach from '../../../i18n/reach';
import { AccessFields, TokenFields, useWriters } from './ChannelFields';
import { ChannelMessages } from './ChannelMessages';
import { ChannelBadge, ChannelProblems, useChannelAbility, useLiveChannels } from './ChannelState';
import { ChannelSteps, CodeForm } from './ChannelSteps';

const route = getRouteApi('/shell/agents/$id/channels');

export function AgentChannelsPage() {
  const { id } = route.useParams();
  const t = useText(channels);
  const query = useLiveChannels(id);
  return (
    <Page title={t.title} lead={t.lead}>
      <Loaded query={query}>
        {(found) => (
          <ItemList label={t.title}>
            {CHANNELS.map((name) => (
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
  name: ChannelName;
  channel: Channel | null;
}

function ChannelItem({ agentId, name, channel }: Props) {
  const t = useText(channels);
  const may = useMay();
  const [open, setOpen] = useState<'steps' | 'form' | 'code' | 'remove' | null>(null);
  const { pairingCodes } = useChannelAbility(agentId, name);
  const [warning, setWarning] = useState<string | null>(null);
  const close = () => setOpen(null);
  const title = t.names[name];
  const remove = useMutation({ mutationFn: () => removeChannel(agentId, name), onSuccess: () => showToast(t.removed(title)) });
  const pairsByCode = channel?.dmPolicy === 'pairing' && pairingCodes;
  const actions = may('editor') && (
    <>
      <Button onPress={() => setOpen(channel ? 'form' : 'steps')}>{channel ? t.change : t.setUp}</Button>
      {channel && (
        <>
          {pairsByCode && <Button onPress={() => setOpen('code')}>{t.enterCode}</Button>}
          <SwitchButton agentId={agentId} name={name} channel={channel} />
          <Button onPress={() => setOpen('remove')}>{t.remove}</Button>
        </>
      )}
    </>
  );
  return (
    <Item
      title={title}
      badge={<ChannelBadge channel={channel} />}
      facts={channel && <ChannelFacts channel={channel} />}
      actions={actions}
    >
      {channel && <ChannelProblems agentId={agentId} name={name} channel={channel} />}
      {warning !== null && channel && !isUnchecked(channel) && <p role="status">{warning}</p>}
      {channel?.enabled && open !== 'steps' && <ChannelMessages agentId={agentId} name={name} channel={channel} />}
      {open === 'steps' && (
        <Dialog title={t.setUpTitle(title)} isOpen onClose={close}>
          <ChannelSteps agentId={agentId} channel={name} onDone={close} />
        </Dialog>
      )}
      <Dialog title={t.enterCode} isOpen={open === 'code'} onClose={close}>
        <CodeForm agentId={agentId} name={name} />
      </Dialog>
      {open === 'form' && <ChannelForm agentId={agentId} name={name} channel={channel} onWarning={setWarning} onClose={close} />}
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

function SwitchButton({ agentId, name, channel }: Props & { channel: Channel }) {
  const t = useText(channels);
  const r = useText(reach);
  const { describe } = useWriters(name);
  const toggle = useMutation({ mutationFn: (enabled: boolean) => configureChannel(agentId, name, { enabled }) });
  return (
    <ConfirmButton
      action={channel.enabled ? t.switchOff : t.switchOn}
      title={r.askFor(channel.enabled ? t.switchOff : t.switchOn, t.names[name])}
      onConfirm={() => toggle.mutateAsync(!channel.enabled)}
    >
      {(channel.enabled ? r.channelOff : r.channelOn)(describe(channelDraft(channel)))}
    </ConfirmButton>
  );
}

function ChannelFacts({ channel }: { channel: Channel }) {
  const t = useText(channels);
  const { access, allowFrom } = channelDraft(channel);
  return (
    <>
      {channel.botUsername && <span>{t.bot(channel.botUsername)}</span>}
      {channel.botTokenHint && <span>{t.token(channel.botTokenHint)}</span>}
      <span>{t.access[access]}</span>
      {allowFrom.length > 0 && <span>{t.onList(allowFrom.length)}</span>}
    </>
  );
}

interface FormProps extends Props {
  onWarning: (warning: string | null) => void;
  onClose: () => void;
}

/** Changes a channel that is set up: other tokens, other people. */
function ChannelForm({ agentId, name, channel, onWarning, onClose }: FormProps) {
  const t = useText(channels);
  const { pairingCodes } = useChannelAbility(agentId, name);
  const [draft, setDraft] = useState(() => channelDraft(channel));
  const { describeChange } = useWriters(name);
  const save = useMutation({
    mutationFn: () => configureChannel(agentId, name, toConfiguration(name, draft, false)),
    onSuccess: ({ warning }) => {
      onWarning(warning ?? null);
      showToast(t.changed(t.names[name]));
    },
  });
  return (
    <FormDialog
      title={t.changeTitle(t.names[name])}
      action={t.change}
      onClose={onClose}
      onSubmit={save.mutateAsync}
      isDisabled={!isComplete(name, draft, false)}
      question={describeChange(channelDraft(channel), draft)}
    >
      <TokenFields name={name} draft={draft} onChange={setDraft} hint={t.keep} />
      <AccessFields name={name} draft={draft} onChange={setDraft} hasCodes={pairingCodes} />
    </FormDialog>
  );
}
