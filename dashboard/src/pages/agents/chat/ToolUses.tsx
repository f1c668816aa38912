import { Check, CircleSlash, CircleX, LoaderCircle } from 'lucide-react';

import type { ToolUse } from '../../../api/answers';
import * as chat from '../../../i18n/chat';
import { useText } from '../../../i18n/language';
import styles from './chat.module.css';

interface Props {
  uses: readonly ToolUse[];
  /** Whether the answer has ended, so that nothing runs any more. */
  isOver: boolean;
}

/** The tools that an agent used, each with its arguments and its result in short, folded. */
export function ToolUses({ uses, isOver }: Props) {
  const t = useText(chat);
  if (uses.length === 0) return null;
  return (
    <ul className={styles.uses} aria-label={t.toolUses}>
      {uses.map((use) => (
        <li key={use.id}>
          {use.arguments || use.result ? (
            <details>
              <summary>
                <ToolTitle use={use} isOver={isOver} />
              </summary>
              <ToolText label={t.toolArguments} text={use.arguments} />
              <ToolText label={t.toolResult} text={use.result} />
            </details>
          ) : (
            <ToolTitle use={use} isOver={isOver} />
          )}
        </li>
      ))}
    </ul>
  );
}

function ToolText({ label, text }: { label: string; text: string }) {
  if (!text) return null;
  return (
    <pre className={styles.detail} tabIndex={0} role="region" aria-label={label}>
      {text}
    </pre>
  );
}

function ToolTitle({ use, isOver }: { use: ToolUse; isOver: boolean }) {
  const t = useText(chat);
  const [Icon, state] = {
    running: isOver ? ([CircleSlash, t.toolStopped] as const) : ([LoaderCircle, t.toolRuns] as const),
    done: [Check, t.toolDone] as const,
    failed: [CircleX, t.toolFailed] as const,
  }[use.state];
  return (
    <span className={styles.use}>
      <Icon size={15} aria-hidden className={use.state === 'running' && !isOver ? styles.turning : ''} />
      <code>{use.name}</code> <span className={styles.note}>{state}</span>
    </span>
  );
}
