import { Link } from '@tanstack/react-router';
import { SendHorizontal, Square } from 'lucide-react';
import { lazy, Suspense, useState, useSyncExternalStore, type ReactNode, type SyntheticEvent } from 'react';

import type { AgentSummary } from '../../api/agents';
import { conversationWith } from '../../api/conversation';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { TextField } from '../../components/Field';
import { Section } from '../../components/Page';
import { Skeleton } from '../../components/Skeleton';
import * as home from '../../i18n/home';
import * as start from '../../i18n/start';
import { useText } from '../../i18n/language';
import { AgentStatus } from '../agents/AgentStatus';
import styles from './home.module.css';

const MessageView = lazy(async () => ({ default: (await import('../agents/chat/MessageView')).MessageView }));
const SHOWN = 2; // the question and its answer

/** One field to talk to an agent, and its answer in place. `about` says what the agent is. */
export function TalkCard({ agent, about }: { agent: AgentSummary; about?: ReactNode }) {
  const t = useText(start);
  const state = useText(home);
  const may = useMay();
  const [text, setText] = useState('');
  const conversation = conversationWith(agent.agentId);
  const { messages, isAnswering } = useSyncExternalStore(conversation.watch, conversation.state);
  const isRunning = agent.status === 'running';
  const params = { id: agent.agentId };
  const send = (event: SyntheticEvent) => {
    event.preventDefault();
    if (!text.trim() || !isRunning || isAnswering) return;
    void conversation.send(text.trim());
    setText('');
  };
  return (
    <Section title={t.talk(agent.name)} actions={<AgentStatus state={agent.status} />}>
      {about}
      {messages.length > 0 && (
        <div className={styles.exchange} role="log" aria-label={t.talk(agent.name)}>
          <Suspense fallback={<Skeleton />}>
            {messages.slice(-SHOWN).map((message) => (
              <MessageView key={message.id} message={message} name={agent.name} />
            ))}
          </Suspense>
          <Link to="/agents/$id/chat" params={params}>
            {t.continue}
          </Link>
        </div>
      )}
      {may('editor') && (
        <form onSubmit={send} className={styles.message}>
          <TextField label={t.message} placeholder={t.placeholder} value={text} onChange={setText} autoComplete="off" />
          {isAnswering ? (
            <Button onPress={() => void conversation.stop()}>
              <Square size={15} aria-hidden /> {t.stop}
            </Button>
          ) : (
            <Button kind="primary" type="submit" isDisabled={!text.trim() || !isRunning}>
              <SendHorizontal size={17} aria-hidden /> {t.send}
            </Button>
          )}
        </form>
      )}
      {agent.status === 'starting' && <p className={styles.muted}>{state.startingText}</p>}
      {!isRunning && agent.status !== 'starting' && (
        <p>
          {state.downText(agent.name)} {agent.statusReason}{' '}
          <Link to="/agents/$id/overview" params={params}>
            {state.see}
          </Link>
        </p>
      )}
    </Section>
  );
}
