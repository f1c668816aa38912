import { RotateCcw } from 'lucide-react';

import { EmptyAnswer, type Message } from '../../../api/conversation';
import { Button } from '../../../components/Button';
import { CopyButton } from '../../../components/CodeBlock';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { Markdown } from '../../../components/Markdown';
import * as chat from '../../../i18n/chat';
import { useText } from '../../../i18n/language';
import { ToolUses } from './ToolUses';
import styles from './chat.module.css';

interface Props {
  message: Message;
  name: string;
  /** Asks the question of this answer again. */
  onRetry?: (() => void) | undefined;
}

/** A message of a conversation, with the tools that were used for it. */
export function MessageView({ message, name, onRetry }: Props) {
  const t = useText(chat);
  const isMine = message.role === 'user';
  const isOver = message.state !== 'streaming';
  const { error } = message;
  const problem = error instanceof EmptyAnswer ? new Error(t.emptyAnswer) : error;
  return (
    <article className={`${styles.message} ${isMine ? styles.mine : ''}`}>
      <header className={styles.head}>
        <p className={styles.who}>{isMine ? t.you : name}</p>
        {isOver && (
          <div className={styles.tools}>
            {message.text && <CopyButton text={message.text} label={t.copy} />}
            {onRetry && (
              <Button kind="quiet" iconOnly aria-label={t.retry} onPress={onRetry}>
                <RotateCcw size={16} aria-hidden />
              </Button>
            )}
          </div>
        )}
      </header>
      <ToolUses uses={message.tools} isOver={isOver} />
      {isMine ? <p className={styles.plain}>{message.text}</p> : <Markdown text={message.text} />}
      {message.state === 'streaming' && <span className={styles.cursor} role="img" aria-label={t.thinking} />}
      {message.state === 'streaming' && Boolean(message.silentFor) && (
        <p role="status" className={styles.note}>
          {t.silent(message.silentFor!)}
        </p>
      )}
      {message.state === 'stopped' && <p className={styles.note}>{t.stopped}</p>}
      {message.state === 'failed' && <ErrorPanel error={problem} />}
    </article>
  );
}
