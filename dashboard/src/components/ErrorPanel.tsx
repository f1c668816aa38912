import { CircleAlert } from 'lucide-react';

import { ApiError } from '../api/errors';
import * as common from '../i18n/common';
import { useText } from '../i18n/language';
import { Button } from './Button';
import styles from './ErrorPanel.module.css';

/** An error in words, with the id of its request. It stays until it is solved. */
export function ErrorPanel({ error, onRetry, title }: { error: unknown; onRetry?: () => unknown; title?: string }) {
  const t = useText(common);
  const problem = error instanceof ApiError ? error : null;
  let message = error instanceof Error && error.message ? error.message : t.unknownError;
  if (problem?.status === 0) message = t.noAnswer;
  return (
    <div className={styles.panel} role="alert">
      <CircleAlert className={styles.icon} size={20} aria-hidden />
      <div className={styles.words}>
        {title && <strong>{title}</strong>}
        <p>{message}</p>
        {problem?.detail && problem.detail !== message && <p className={styles.detail}>{problem.detail}</p>}
        {problem?.retryAfterSeconds ? <p>{t.retryAfter(problem.retryAfterSeconds)}</p> : null}
        {problem?.requestId && (
          <p className={styles.id}>
            {t.requestId} <code>{problem.requestId}</code>
          </p>
        )}
        {onRetry && (
          <div>
            <Button onPress={() => void onRetry()}>{t.retry}</Button>
          </div>
        )}
      </div>
    </div>
  );
}
