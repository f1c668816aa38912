import { Check, CircleSlash, LoaderCircle } from 'lucide-react';

import type { ToolUse } from '../../api/conversation';
import * as chat from '../../i18n/chat';
import { useText } from '../../i18n/language';
import styles from './chat.module.css';

interface Props {
  uses: readonly ToolUse[];
  /** Whether the answer has ended, so that nothing runs any more. */
  isOver: boolean;
}

/** The tools that an agent used, each with what it was used on, folded. */
export function ToolUses({ uses, isOver }: Props) {
  const t = useText(chat);
  if (uses.length === 0) return null;
  return (
    <ul className={styles.uses} aria-label={t.toolUses}>
      {uses.map((use) => (
        <li key={use.id}>
          {use.detail ? (
            <details>
              <summary>
                <ToolTitle use={use} isOver={isOver} />
              </summary>
              <pre className={styles.detail} tabIndex={0}>
                {use.detail}
              </pre>
            </details>
          ) : (
            <ToolTitle use={use} isOver={isOver} />
          )}
        </li>
      ))}
    </ul>
  );
}

function ToolTitle({ use, isOver }: { use: ToolUse; isOver: boolean }) {
  const t = useText(chat);
  const Icon = use.isDone ? Check : isOver ? CircleSlash : LoaderCircle;
  const state = use.isDone ? t.toolDone : isOver ? t.toolStopped : t.toolRuns;
  return (
    <span className={styles.use}>
      <Icon size={15} aria-hidden className={!use.isDone && !isOver ? styles.turning : ''} />
      <code>{use.name}</code> <span className={styles.note}>{state}</span>
    </span>
  );
}
