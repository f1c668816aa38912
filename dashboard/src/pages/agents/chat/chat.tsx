import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { ArrowDown, SendHorizontal, Square } from 'lucide-react';
import { useEffect, useRef, useState, useSyncExternalStore, type KeyboardEvent } from 'react';

import { agentQuery } from '../../../api/agents';
import { conversationWith, type Conversation, type Message } from '../../../api/conversation';
import { agentModelsQuery, usedModel } from '../../../api/models';
import { live } from '../../../api/live';
import { useMay } from '../../../app/useSession';
import { Button } from '../../../components/Button';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { Page } from '../../../components/Page';
import { Note } from '../../../components/Row';
import { Skeleton } from '../../../components/Skeleton';
import { useFollowEnd } from '../../../components/useFollowEnd';
import * as chat from '../../../i18n/chat';
import * as start from '../../../i18n/start';
import { useText } from '../../../i18n/language';
import { ConversationMenu } from './ConversationMenu';
import { MessageView } from './MessageView';
import styles from './chat.module.css';

const route = getRouteApi('/shell/agents/$id/chat');
const TYPICAL_PIXELS = 90;

export function AgentChatPage() {
  const { id } = route.useParams();
  return <Chat key={id} agentId={id} />;
}

function Chat({ agentId }: { agentId: string }) {
  const t = useText(chat);
  const may = useMay();
  const agent = useQuery(agentQuery(agentId));
  const conversation = conversationWith(agentId);
  const { messages, isAnswering, isLoading, error } = useSyncExternalStore(conversation.watch, conversation.state);
  const name = agent.data?.agent.name ?? agentId;
  const models = useQuery(agentModelsQuery(agentId)).data?.models;
  const hasNoModel = may('editor') && models !== undefined && usedModel(models, agent.data?.agent.model) === null;
  const isDown = agent.data !== undefined && ['failed', 'not_running'].includes(agent.data.agent.status);
  const actions = (
    <>
      {agent.data?.agent.status === 'running' && (
        <ConversationMenu
          agentId={agentId}
          shown={messages[0]?.id}
          isAnswering={isAnswering}
          onOpen={(id) => void conversation.open(id)}
        />
      )}
      {messages.length > 0 && <Button onPress={() => conversation.begin()}>{t.clear}</Button>}
    </>
  );
  useFreshConversation(conversation, agentId, agent.data?.agent.status);
  return (
    <Page title={t.title(name)} actions={actions} fills>
      <div className={styles.layout}>
        {messages.length > 0 ? (
          <MessageList
            messages={messages}
            name={name}
            onRetry={may('editor') && !isAnswering ? () => void conversation.retry() : undefined}
          />
        ) : (
          <div className={styles.empty}>{isLoading ? <Skeleton /> : <Nothing error={agent.error ?? (isDown ? null : error)} />}</div>
        )}
        <Hints agentId={agentId} isDown={isDown} hasNoModel={hasNoModel} />
        <Composer isAnswering={isAnswering} onSend={(text) => void conversation.send(text)} onStop={() => void conversation.stop()} />
      </div>
    </Page>
  );
}

/** Load the conversation when the page is shown, the agent changes its state, or another person writes. */
function useFreshConversation(conversation: Conversation, agentId: string, status: string | undefined): void {
  useEffect(() => {
    const load = () => document.visibilityState === 'visible' && void conversation.load();
    load();
    document.addEventListener('visibilitychange', load); // others may have written meanwhile
    const stopListening = live.listen((event) => {
      const isMessage = event.type === 'conversation.changed' && event.data.state === 'answering';
      if (isMessage && event.agentId === agentId) conversation.loadMessage(event.subject.id);
    });
    return () => {
      document.removeEventListener('visibilitychange', load);
      stopListening();
    };
  }, [conversation, agentId, status]);
}

function Hints({ agentId, isDown, hasNoModel }: { agentId: string; isDown: boolean; hasNoModel: boolean }) {
  const t = useText(chat);
  const words = useText(start);
  return (
    <>
      {isDown && (
        <p role="status" className={styles.down}>
          {t.notRunning}{' '}
          <Link to="/agents/$id/overview" params={{ id: agentId }}>
            {t.toOverview}
          </Link>
        </p>
      )}
      {hasNoModel && (
        <Note small>
          {words.standInAnswers}{' '}
          <Link to="/agents/$id/overview" params={{ id: agentId }}>
            {words.modelTitle}
          </Link>
        </Note>
      )}
    </>
  );
}

function Nothing({ error }: { error: unknown }) {
  const t = useText(chat);
  return error ? <ErrorPanel error={error} /> : <EmptyState title={t.empty}>{t.emptyText}</EmptyState>;
}

interface ListProps {
  messages: readonly Message[];
  name: string;
  onRetry: (() => void) | undefined;
}

/** A virtual list that stays at its end unless the reader scrolls up. */
function MessageList({ messages, name, onRetry }: ListProps) {
  const t = useText(chat);
  const frame = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: messages.length,
    getScrollElement: () => frame.current,
    estimateSize: () => TYPICAL_PIXELS,
    overscan: 6,
  });
  const total = virtual.getTotalSize();
  const { isAtEnd, onScroll, follow } = useFollowEnd(frame, `${total} ${messages.length}`);
  const asked = messages.findLast(({ role }) => role === 'user')?.id;
  useEffect(follow, [asked, follow]); // who asks wants to see the answer
  return (
    <div className={styles.scroller}>
      <div ref={frame} className={styles.frame} onScroll={onScroll} tabIndex={0} role="log" aria-label={t.title(name)}>
        <div className={styles.messages} style={{ height: total }}>
          {virtual.getVirtualItems().map((item) => (
            <div
              key={item.key}
              ref={virtual.measureElement}
              data-index={item.index}
              className={styles.item}
              style={{ transform: `translateY(${item.start}px)` }}
            >
              <MessageView
                message={messages[item.index]!}
                name={name}
                onRetry={item.index === messages.length - 1 ? onRetry : undefined}
              />
            </div>
          ))}
        </div>
      </div>
      {!isAtEnd && (
        <div className={styles.latest}>
          <Button onPress={follow}>
            <ArrowDown size={16} aria-hidden /> {t.latest}
          </Button>
        </div>
      )}
    </div>
  );
}

interface ComposerProps {
  isAnswering: boolean;
  onSend: (text: string) => void;
  onStop: () => void;
}

function Composer({ isAnswering, onSend, onStop }: ComposerProps) {
  const t = useText(chat);
  const may = useMay();
  const [text, setText] = useState('');
  const send = () => {
    if (!text.trim() || isAnswering) return;
    onSend(text.trim());
    setText('');
  };
  const press = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send();
  };
  if (!may('editor')) return null;
  return (
    <div className={styles.composer}>
      <textarea
        aria-label={t.message}
        placeholder={t.placeholder}
        rows={2}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={press}
      />
      {isAnswering ? (
        <Button onPress={onStop}>
          <Square size={15} aria-hidden /> {t.stop}
        </Button>
      ) : (
        <Button kind="primary" onPress={send} isDisabled={!text.trim()}>
          <SendHorizontal size={17} aria-hidden /> {t.send}
        </Button>
      )}
    </div>
  );
}
