import { useMutation, useQuery } from '@tanstack/react-query';
import { ExternalLink } from 'lucide-react';
import { useState } from 'react';

import { channelsQuery, configureChannel } from '../../../api/agentData';
import { openAgentPage } from '../../../api/agents';
import {
  approveRequest,
  channelDraft,
  isComplete,
  isUnchecked,
  toConfiguration,
  type Channel,
  type ChannelName,
} from '../../../api/channels';
import { Button, buttonClass } from '../../../components/Button';
import { ConfirmButton } from '../../../components/ConfirmButton';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { TextField } from '../../../components/Field';
import { Loaded } from '../../../components/Loaded';
import { Note, Row } from '../../../components/Row';
import { Step, Steps } from '../../../components/Steps';
import * as channels from '../../../i18n/channels';
import { useText } from '../../../i18n/language';
import { AccessFields, TokenFields, useWriters } from './ChannelFields';
import { ChannelMessages } from './ChannelMessages';
import { ChannelBadge, ChannelProblems, useChannelAbility } from './ChannelState';

const PLATFORMS = {
  telegram: 'https://t.me/BotFather',
  slack: 'https://api.slack.com/apps',
  discord: 'https://discord.com/developers/applications',
} as const;

interface Props {
  agentId: string;
  channel: ChannelName;
  onDone: () => void;
}

/** Sets up a channel step by step, from the bot at its platform to the first person who may write to it. */
export function ChannelSteps({ agentId, channel: name, onDone }: Props) {
  const query = useQuery(channelsQuery(agentId)); // the page around it follows them
  return <Loaded query={query}>{(found) => <StepList agentId={agentId} name={name} channel={found[name]} onDone={onDone} />}</Loaded>;
}

interface ListProps {
  agentId: string;
  name: ChannelName;
  channel: Channel | null;
  onDone: () => void;
}

function StepList({ agentId, name, channel, onDone }: ListProps) {
  const t = useText(channels);
  const [draft, setDraft] = useState(() => channelDraft(channel));
  const connect = useMutation({ mutationFn: () => configureChannel(agentId, name, toConfiguration(name, draft, true)) });
  const question = useWriters(name).describeChange(null, draft);
  const { pairingCodes } = useChannelAbility(agentId, name);
  const isSetUp = channel !== null;
  const texts = t.steps[name];
  const last = texts.length - 1;
  return (
    <Steps label={t.stepsOf(t.names[name])}>
      {texts.map((text, index) => (
        <Step key={text} title={text} isDone={isSetUp && !isUnchecked(channel)}>
          {index === 0 && !isSetUp && name !== 'whatsapp' && <PlatformLink name={name} />}
          {index === last && !isSetUp && <TokenFields name={name} draft={draft} onChange={setDraft} />}
        </Step>
      ))}
      <Step title={isSetUp ? `${t.policy}: ${t.access[channelDraft(channel).access]}` : t.chooseAccess} isDone={isSetUp}>
        {!isSetUp && (
          <>
            <AccessFields name={name} draft={draft} onChange={setDraft} hasCodes={pairingCodes} />
            {connect.error && <ErrorPanel error={connect.error} />}
            <ConfirmButton
              kind="primary"
              isDisabled={connect.isPending || !isComplete(name, draft, true)}
              action={connect.isPending ? t.connecting : t.connect}
              title={connect.isPending ? t.connecting : t.connect}
              onConfirm={connect.mutateAsync}
            >
              {question}
            </ConfirmButton>
          </>
        )}
        {connect.data?.warning && channel && !isUnchecked(channel) && <Note>{connect.data.warning}</Note>}
      </Step>
      <Step title={t.write[name]} isDone={Boolean(channel?.lastMessageAt)}>
        {isSetUp && <FirstMessage agentId={agentId} name={name} channel={channel} onDone={onDone} />}
      </Step>
    </Steps>
  );
}

function PlatformLink({ name }: { name: keyof typeof PLATFORMS }) {
  const t = useText(channels);
  return (
    <a className={buttonClass()} href={PLATFORMS[name]} target="_blank" rel="noreferrer">
      {t.open[name]} <ExternalLink size={15} aria-hidden />
    </a>
  );
}

/** Whether the bot is connected, where to write to it, and the code that a stranger gets. */
function FirstMessage({ agentId, name, channel, onDone }: ListProps & { channel: Channel }) {
  const t = useText(channels);
  const open = useMutation({ mutationFn: () => openAgentPage(agentId) });
  const { pairingCodes } = useChannelAbility(agentId, name);
  const hasRequest = channel.pairingRequests.some(({ requestId }) => requestId !== null);
  const needsCode = channel.dmPolicy === 'pairing' && pairingCodes && !hasRequest;
  return (
    <>
      <Row>
        <ChannelBadge channel={channel} />
        {name === 'telegram' && channel.botUsername && (
          <a
            className={buttonClass()}
            href={`https://t.me/${encodeURIComponent(channel.botUsername)}`}
            target="_blank"
            rel="noreferrer"
          >
            {t.openChat(channel.botUsername)} <ExternalLink size={15} aria-hidden />
          </a>
        )}
        {name === 'whatsapp' && (
          <Button onPress={() => open.mutate()} isDisabled={open.isPending}>
            {t.openAgent} <ExternalLink size={15} aria-hidden />
          </Button>
        )}
      </Row>
      {open.error && <ErrorPanel error={open.error} />}
      <ChannelProblems agentId={agentId} name={name} channel={channel} />
      <ChannelMessages agentId={agentId} name={name} channel={channel} />
      {needsCode && <CodeForm agentId={agentId} name={name} />}
      <Button kind="primary" onPress={onDone}>
        {t.done}
      </Button>
    </>
  );
}

interface CodeProps {
  agentId: string;
  name: ChannelName;
}

/** Lets a person write to the bot, by the code that it gave to them. */
export function CodeForm({ agentId, name }: CodeProps) {
  const t = useText(channels);
  const [code, setCode] = useState('');
  const approve = useMutation({ mutationFn: () => approveRequest(agentId, name, code.trim()), onSuccess: () => setCode('') });
  return (
    <>
      <Note>{t.codeText}</Note>
      <TextField label={t.code} value={code} onChange={setCode} autoComplete="off" monospace />
      <Row>
        <Button onPress={() => approve.mutate()} isDisabled={approve.isPending || !/^\s*[A-Za-z0-9]+\s*$/.test(code)}>
          {t.approve}
        </Button>
        {approve.isSuccess && <span role="status">{t.approved}</span>}
      </Row>
      {approve.error && <ErrorPanel error={approve.error} title={t.notApproved} />}
    </>
  );
}
