import { useEffect, useState } from 'react';

import * as common from '../i18n/common';
import { useText } from '../i18n/language';
import { Button } from './Button';
import styles from './Skeleton.module.css';

const PATIENCE_MS = 10_000;

/** Stands for content that loads; after 10 s it says so and offers to reload the page. */
export function Skeleton({ lines = 4 }: { lines?: number }) {
  const t = useText(common);
  const [isLate, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, []);
  return (
    <div className={styles.skeleton} role="status" aria-busy>
      <span className="visually-hidden">{t.loading}</span>
      {Array.from({ length: lines }, (_, line) => (
        <div key={line} className={styles.line} />
      ))}
      {isLate && (
        <p>
          {t.slow} <Button onPress={() => location.reload()}>{t.reload}</Button>
        </p>
      )}
    </div>
  );
}
