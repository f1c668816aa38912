import { Link } from '@tanstack/react-router';
import { Check, Smartphone } from 'lucide-react';
import { lazy, Suspense, useState } from 'react';

import { CHANNELS, type Channel, type ChannelName } from '../../api/channels';
import { Button } from '../../components/Button';
import { Dialog } from '../../components/Dialog';
import { Section } from '../../components/Page';
import { Note, PlainList, Row } from '../../components/Row';
import { Skeleton } from '../../components/Skeleton';
import * as channelTexts from '../../i18n/channels';
import * as start from '../../i18n/start';
import { useText } from '../../i18n/language';
import { ChannelMessages } from '../agents/channels/ChannelMessages';
import { ChannelBadge, ChannelProblems } from '../agents/channels/ChannelState';
import styles from './home.module.css';

const ChannelSteps = lazy(async () => ({ default: (await import('../agents/channels/ChannelSteps')).ChannelSteps }));

interface Props {
  agentId: string;
  channels: Readonly<Record<ChannelName, Channel | null>> | undefined;
  onSkip: () => void;
}

/** Connects the agent to a chat app, step by step for Telegram. */
export function PhoneCard({ agentId, channels, onSkip }: Props) {
  const t = useText(start);
  const { names } = useText(channelTexts);
  const [isOpen, setOpen] = useState(false);
  const connected = CHANNELS.flatMap((name) => (channels?.[name] ? [[name, channels[name]] as const] : []));
  const hasAny = connected.length > 0;
  const skip = hasAny ? (
    <Check className={styles.done} size={18} aria-hidden />
  ) : (
    <div className={styles.skip}>
      <Button kind="quiet" onPress={onSkip}>
        {t.later}
      </Button>
    </div>
  );
  const toChannels = (
    <Link to="/agents/$id/channels" params={{ id: agentId }}>
      {hasAny ? t.channels : t.others}
    </Link>
  );
  return (
    <Section title={hasAny ? t.phoneDone : t.phoneTitle} actions={skip}>
      {hasAny ? (
        <PlainList label={t.phoneDone}>
          {connected.map(([name, channel]) => (
            <li key={name}>
              <div className={styles.channel}>
                <span>{name === 'telegram' && channel.botUsername ? t.writesAs(channel.botUsername) : names[name]}</span>
                <ChannelBadge channel={channel} />
              </div>
              {!isOpen && <ChannelProblems agentId={agentId} name={name} channel={channel} />}
              {channel.enabled && !isOpen && <ChannelMessages agentId={agentId} name={name} channel={channel} />}
            </li>
          ))}
        </PlainList>
      ) : (
        <Note>{t.phoneText}</Note>
      )}
      <Row>
        {!channels?.telegram && (
          <Button kind={hasAny ? 'plain' : 'primary'} onPress={() => setOpen(true)}>
            <Smartphone size={17} aria-hidden /> {t.telegram}
          </Button>
        )}
        {toChannels}
      </Row>
      <Dialog title={t.telegramTitle} isOpen={isOpen} onClose={() => setOpen(false)}>
        <Suspense fallback={<Skeleton />}>
          <ChannelSteps agentId={agentId} channel="telegram" onDone={() => setOpen(false)} />
        </Suspense>
      </Dialog>
    </Section>
  );
}
